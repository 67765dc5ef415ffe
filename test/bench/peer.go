//go:build linux

package main

import (
	"debug/buildinfo"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/headgate/headgate/test/bench/rig"
)

// peer is one proxy that can be put under test.
type peer struct {
	name string
	// tools are the programs that it needs.
	tools []string
	// start runs it with a number of worker threads or processes.
	start func(s *site, workers int, cpus []int) (*rig.Process, error)
	// tls tells that it serves HTTPS as well.
	tls bool
	// version says what was measured.
	version func(s *site) string
}

// peers are in the order of the tables.
var peers = []peer{
	{name: "headgate", tools: []string{"headgate"}, start: startHeadgate, tls: true, version: headgateVersion},
	{name: "floor", tools: []string{"floor"}, start: startFloor, version: func(*site) string {
		return "a relay of four system calls on the same poller, " + runtime.Version()
	}},
	{name: "nginx", tools: []string{"nginx"}, start: startNginx, tls: true, version: nginxVersion},
	{name: "nginx-default", tools: []string{"nginx"}, start: startNginxDefault, tls: true, version: nginxVersion},
	{name: "haproxy", tools: []string{"haproxy"}, start: startHAProxy, tls: true, version: haproxyVersion},
	{name: "caddy", tools: []string{"caddy"}, start: startCaddy, tls: true, version: caddyVersion},
	{name: "reverseproxy", tools: []string{"reverseproxy"}, start: startReverseProxy, tls: true, version: func(*site) string {
		return "net/http/httputil of " + runtime.Version()
	}},
}

// choosePeers returns the peers with the names that are available, and why the
// others are not.
func choosePeers(names []string, tools map[string]string, missing map[string]string) (chosen []peer, skipped map[string]string, err error) {
	skipped = make(map[string]string)
	for _, name := range names {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return nil, nil, fmt.Errorf("unknown peer %q", name)
		}
	}
	for _, p := range peers {
		if !slices.Contains(names, p.name) {
			continue
		}
		var lacks []string
		for _, tool := range p.tools {
			if tools[tool] == "" {
				lacks = append(lacks, tool+": "+missing[tool])
			}
		}
		if len(lacks) > 0 {
			skipped[p.name] = strings.Join(lacks, "; ")
			continue
		}
		chosen = append(chosen, p)
	}
	return chosen, skipped, nil
}

func headgateVersion(s *site) string { return rig.FirstLine(s.tools["headgate"], "version") }
func nginxVersion(s *site) string    { return rig.FirstLine(s.tools["nginx"], "-v") }
func haproxyVersion(s *site) string  { return rig.FirstLine(s.tools["haproxy"], "-v") }

// caddyVersion reads the module's version from the binary: a tool of a module
// does not know it itself.
func caddyVersion(s *site) string {
	info, err := buildinfo.ReadFile(s.tools["caddy"])
	if err != nil {
		return err.Error()
	}
	for _, dep := range append(info.Deps, &info.Main) {
		if dep.Path == "github.com/caddyserver/caddy/v2" {
			return "Caddy " + dep.Version + ", " + info.GoVersion
		}
	}
	return "unknown"
}
