//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/rig"
)

// startHAProxy runs HAProxy with reuse of upstream connections by all clients.
func startHAProxy(s *site, workers int, cpus []int) (*rig.Process, error) {
	config := fmt.Sprintf(`global
  nbthread %d
  maxconn 9800
  tune.maxaccept 500
  tune.pool-high-fd-ratio 95
  tune.pool-low-fd-ratio 95
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
  timeout http-request 10s
  http-reuse always
  option forwardfor
frontend in
  bind 127.0.0.1:%d backlog 4096
  bind 127.0.0.1:%d ssl crt %s backlog 4096
  http-request set-header X-Forwarded-Proto %%[ssl_fc,iif(https,http)]
  use_backend slow if { path /hung /large /sink }
  default_backend fast
backend fast
  server fast 127.0.0.1:%d pool-max-conn 4096
backend slow
  server slow 127.0.0.1:%d
`, workers, s.http, s.https, s.pem, s.upstream, s.slow)
	path := filepath.Join(s.dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return rig.Launch(cpus, s.tools["haproxy"], "-db", "-f", path)
}
