//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/rig"
)

// startNginx runs nginx with a pool of upstream connections, the way that its
// documentation recommends for speed.
func startNginx(s *site, workers int, cpus []int) (*rig.Process, error) {
	return s.startNginx("nginx", workers, cpus, rig.LongKeepAlive+fmt.Sprintf(`
  upstream fast { server 127.0.0.1:%d; keepalive 1024; keepalive_requests 1000000000; keepalive_time 1h; }
  upstream slow { server 127.0.0.1:%d; }
`, s.upstream, s.slow), `
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_max_temp_file_size 0;
    proxy_request_buffering off;
`)
}

// startNginxDefault runs nginx as it comes: before 1.29.7 that is HTTP/1.0 and a
// new connection to the upstream for each request.
func startNginxDefault(s *site, workers int, cpus []int) (*rig.Process, error) {
	return s.startNginx("nginx-default", workers, cpus, fmt.Sprintf(`
  upstream fast { server 127.0.0.1:%d; }
  upstream slow { server 127.0.0.1:%d; }
`, s.upstream, s.slow), "")
}

func (s *site) startNginx(name string, workers int, cpus []int, upstreams, proxy string) (*rig.Process, error) {
	config := rig.NginxHead(s.dir, name, workers) + upstreams + fmt.Sprintf(`
  server {
    listen 127.0.0.1:%d backlog=4096;
    listen 127.0.0.1:%d ssl backlog=4096;
    server_name %s;
    ssl_certificate %s;
    ssl_certificate_key %s;
    ssl_protocols TLSv1.2 TLSv1.3;
    client_max_body_size 0;
%s
    location / { proxy_pass http://fast; }
    location /hung { proxy_pass http://slow; }
    location /large { proxy_pass http://slow; }
    location /sink { proxy_pass http://slow; }
  }
}
`, s.http, s.https, hostName, s.cert, s.key, proxy)
	path := filepath.Join(s.dir, name+".conf")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return rig.Launch(cpus, s.tools["nginx"], "-c", path, "-p", s.dir)
}
