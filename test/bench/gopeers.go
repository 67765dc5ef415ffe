//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/rig"
)

// startCaddy runs Caddy with HTTP/1.1 only, without its admin endpoint and its
// access log, and with a pool that is large enough for all connections.
func startCaddy(s *site, workers int, cpus []int) (*rig.Process, error) {
	pool := "transport http {\n      keepalive_idle_conns_per_host 4096\n      keepalive_idle_conns 4096\n      compression off\n    }"
	config := fmt.Sprintf(`{
  admin off
  auto_https off
  persist_config off
  fallback_sni %s
  servers {
    protocols h1
  }
}
(site) {
  @slow path /hung /large /sink
  reverse_proxy @slow 127.0.0.1:%d
  reverse_proxy 127.0.0.1:%d {
    %s
  }
}
http://:%d {
  bind 127.0.0.1
  import site
}
https://%s:%d {
  bind 127.0.0.1
  tls %s %s
  import site
}
`, hostName, s.slow, s.upstream, pool, s.http, hostName, s.https, s.cert, s.key)
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return rig.Launch(cpus, "/usr/bin/env", fmt.Sprintf("GOMAXPROCS=%d", workers), "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir,
		s.tools["caddy"], "run", "--config", path, "--adapter", "caddyfile")
}

// startReverseProxy runs Go's ReverseProxy.
func startReverseProxy(s *site, workers int, cpus []int) (*rig.Process, error) {
	return rig.Launch(cpus, "/usr/bin/env", fmt.Sprintf("GOMAXPROCS=%d", workers),
		s.tools["reverseproxy"], "-listen", rig.Loopback(s.http), "-listen-tls", rig.Loopback(s.https),
		"-cert", s.cert, "-key", s.key, "-upstream", "http://"+rig.Loopback(s.upstream))
}

// startFloor runs the relay, which is one thread in any case.
func startFloor(s *site, _ int, cpus []int) (*rig.Process, error) {
	return rig.Launch(cpus, s.tools["floor"], "-listen", rig.Loopback(s.http), "-upstream", rig.Loopback(s.upstream))
}
