//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// hostName is what all requests ask for.
const hostName = "paper.example"

// setup is what an experiment asks of a proxy.
type setup struct {
	workers int
	routes  []route
	// timeout is how long an upstream may take to answer; 0 leaves it at the
	// proxy's default.
	timeout time.Duration
	// threads is how many requests a server with a thread for each may serve; 0
	// leaves it at its default.
	threads int
	// flags are further ones of the gateway.
	flags []string
}

// route sends a prefix of paths to an upstream.
type route struct {
	name   string // of the upstream
	prefix string
	port   int
	pool   int // the most requests at once that the proxy sends to it; 0 leaves it at its default
	// waiting is the most requests that wait for a place in the gateway's pool, as
	// long as it takes; 0 leaves both at their defaults.
	waiting int
}

// ports are where the proxy under test listens.
type ports struct {
	http, admin int
}

// headgateObjects is the gateway's configuration: Gateway API objects, and a
// policy for each upstream with a pool.
func headgateObjects(s setup, p ports) string {
	var b, rules strings.Builder
	fmt.Fprintf(&b, `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: paper}
spec:
  gatewayClassName: headgate
  addresses: [{type: IPAddress, value: 127.0.0.1}]
  listeners:
  - {name: http, port: %d, protocol: HTTP}
`, p.http)
	for _, r := range s.routes {
		fmt.Fprintf(&rules, "  - matches: [{path: {value: %s}}]\n    backendRefs: [{name: %s, port: 80}]\n", r.prefix, r.name)
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: paper}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: paper, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[2]d}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`, r.name, r.port)
		if r.pool > 0 {
			waiting := ""
			if r.waiting > 0 {
				waiting = fmt.Sprintf(", waiting: %d, waitTimeout: 10m", r.waiting)
			}
			fmt.Fprintf(&b, `---
apiVersion: headgate.dev/v1alpha1
kind: BackendPolicy
metadata: {name: %[1]s, namespace: paper}
spec:
  targetRefs: [{group: "", kind: Service, name: %[1]s}]
  pool: {size: %[2]d%[3]s}
`, r.name, r.pool, waiting)
		}
	}
	fmt.Fprintf(&b, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: paper}
spec:
  parentRefs: [{name: edge}]
  hostnames: [%s]
  rules:
%s`, hostName, rules.String())
	return b.String()
}

// cluster is the name of an upstream in the gateway's metrics.
func cluster(name string) string { return "paper/" + name + ":80" }

// nginxConfig is nginx as it comes, or tuned: with a pool of upstream
// connections and client connections without limit.
func nginxConfig(dir string, s setup, p ports, tuned bool) string {
	var b strings.Builder
	b.WriteString(rig.NginxHead(dir, "nginx", s.workers))
	if tuned {
		b.WriteString(rig.LongKeepAlive)
	}
	for _, r := range s.routes {
		max := ""
		if r.pool > 0 {
			max = fmt.Sprintf(" max_conns=%d max_fails=0", r.pool)
		}
		fmt.Fprintf(&b, "  upstream %s {\n", r.name)
		if s.workers > 1 {
			fmt.Fprintf(&b, "    zone %s 64k;\n", r.name) // or each worker would count for itself
		}
		fmt.Fprintf(&b, "    server 127.0.0.1:%d%s;\n", r.port, max)
		if tuned {
			b.WriteString("    keepalive 1024; keepalive_requests 1000000000; keepalive_time 1h;\n")
		}
		b.WriteString("  }\n")
	}
	fmt.Fprintf(&b, "  server {\n    listen 127.0.0.1:%d backlog=4096;\n    server_name %s;\n", p.http, hostName)
	if tuned {
		b.WriteString(`    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_max_temp_file_size 0;
    proxy_request_buffering off;
`)
	}
	if s.timeout > 0 {
		fmt.Fprintf(&b, "    proxy_read_timeout %dms;\n", s.timeout.Milliseconds())
	}
	for _, r := range s.routes {
		fmt.Fprintf(&b, "    location %s { proxy_pass http://%s; }\n", r.prefix, r.name)
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// Apache's defaults, per mpm, and how many threads a process has when there are
// more than by default.
const (
	workerThreads    = 400
	preforkProcesses = 256
	threadsPerChild  = 25
	manyPerChild     = 500
)

// apacheConfig is Apache httpd with mod_proxy and a thread (mpm worker) or a
// process (mpm prefork) for each connection; its limits are its defaults unless
// the setup asks for more. All threads are there from the start and stay.
func apacheConfig(dir, modules, mpm string, s setup, p ports, root bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `ServerRoot %[1]s
DefaultRuntimeDir %[1]s
PidFile %[1]s/apache.pid
ServerName %[2]s
Listen 127.0.0.1:%[3]d
ListenBacklog 4096
ErrorLog /dev/stderr
LogLevel crit
LoadModule mpm_%[4]s_module %[5]s/mod_mpm_%[4]s.so
LoadModule authz_core_module %[5]s/mod_authz_core.so
LoadModule proxy_module %[5]s/mod_proxy.so
LoadModule proxy_http_module %[5]s/mod_proxy_http.so
`, dir, hostName, p.http, mpm, modules)
	if root {
		b.WriteString("User nobody\nGroup nogroup\n")
	}
	if mpm == "prefork" {
		n := preforkProcesses
		if s.threads > 0 {
			n = s.threads
		}
		fmt.Fprintf(&b, "ServerLimit %[1]d\nMaxRequestWorkers %[1]d\nStartServers %[1]d\nMinSpareServers 1\nMaxSpareServers %[1]d\n", n)
	} else {
		n, each := workerThreads, threadsPerChild
		if s.threads > n {
			each = manyPerChild
			n = (s.threads + each - 1) / each * each
		}
		fmt.Fprintf(&b, "ThreadLimit %[2]d\nServerLimit %[3]d\nThreadsPerChild %[2]d\nMaxRequestWorkers %[1]d\nStartServers %[3]d\nMinSpareThreads 1\nMaxSpareThreads %[1]d\n",
			n, each, n/each)
	}
	if s.timeout > 0 {
		fmt.Fprintf(&b, "ProxyTimeout %dms\n", s.timeout.Milliseconds())
	}
	// The first prefix that matches counts.
	routes := slices.Clone(s.routes)
	slices.SortStableFunc(routes, func(x, y route) int { return len(y.prefix) - len(x.prefix) })
	for _, r := range routes {
		to := "/"
		if r.prefix != "/" {
			to = r.prefix
		}
		// An upstream that refused is asked again at once, as the others do.
		fmt.Fprintf(&b, "ProxyPass %s http://127.0.0.1:%d%s retry=0\n", r.prefix, r.port, to)
	}
	return b.String()
}
