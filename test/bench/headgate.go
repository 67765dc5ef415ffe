//go:build linux

package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/headgate/headgate/test/bench/rig"
)

// startHeadgate runs the gateway on a directory of Gateway API objects, with
// its defaults but for the idle timeout and the access log, which no peer
// writes.
func startHeadgate(s *site, workers int, cpus []int) (*rig.Process, error) {
	dir := filepath.Join(s.dir, "headgate")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cert, err := os.ReadFile(s.cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(s.key)
	if err != nil {
		return nil, err
	}
	objects := fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: cert, namespace: bench}
data: {tls.crt: %s, tls.key: %s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: bench}
spec:
  gatewayClassName: headgate
  addresses: [{type: IPAddress, value: 127.0.0.1}]
  listeners:
  - {name: http, port: %d, protocol: HTTP}
  - {name: https, port: %d, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: bench}
spec:
  parentRefs: [{name: edge}]
  hostnames: [%s]
  rules:
  - backendRefs: [{name: fast, port: 80}]
  - matches: [{path: {value: /hung}}, {path: {value: /large}}, {path: {value: /sink}}]
    backendRefs: [{name: slow, port: 80}]
`, base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key), s.http, s.https, hostName)
	for name, port := range map[string]int{"fast": s.upstream, "slow": s.slow} {
		objects += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: bench}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: bench, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[2]d}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
`, name, port)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(objects), 0o644); err != nil {
		return nil, err
	}
	return rig.Launch(cpus, s.tools["headgate"], "serve", dir, "--workers", strconv.Itoa(workers), "--admin-address", rig.Loopback(s.admin),
		"--access-log", "off", "--idle-timeout", "300s", "--drain-period", "1s", "--log-level", "warn")
}
