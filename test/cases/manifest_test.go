package cases

import (
	"fmt"
	"net/netip"
	"strings"
)

// gatewayClass is the class that headgate serves.
const gatewayClass = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
`

// gatewayObject is a Gateway in the namespace default on 127.0.0.1. Listeners
// are YAML flow mappings.
func gatewayObject(name string, listeners ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: default}
spec:
  gatewayClassName: headgate
  addresses: [{type: IPAddress, value: 127.0.0.1}]
  listeners:
`, name)
	for _, l := range listeners {
		fmt.Fprintf(&b, "  - %s\n", l)
	}
	return b.String()
}

// route is an HTTPRoute in the namespace default that hangs on all listeners of
// the Gateway "edge". The rest of its spec is YAML.
func route(name, spec string) string {
	return routeOn(name, "{name: edge}", spec)
}

// routeOn is an HTTPRoute with the parent reference, a YAML flow mapping.
func routeOn(name, parent, spec string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: default}
spec:
  parentRefs: [%s]
%s
`, name, parent, indent(spec))
}

// simpleRoute sends everything for a host to a backend.
func simpleRoute(host string, b *backend) string {
	return route(strings.ReplaceAll(host, ".", "-"), fmt.Sprintf(`
hostnames: [%q]
rules:
- backendRefs: [{name: %s, port: 80}]`, host, b.name))
}

// service is a Service with the port 80 and an EndpointSlice for each endpoint.
func service(namespace, name string, endpoints ...netip.AddrPort) string {
	doc := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s}
spec:
  ports: [{name: http, port: 80, protocol: TCP}]
`, name, namespace)
	for i, e := range endpoints {
		doc += "---\n" + endpointSlice(namespace, name, i, e, "{ready: true}")
	}
	return doc
}

// endpointSlice is one endpoint of a Service with the conditions, a YAML flow
// mapping.
func endpointSlice(namespace, service string, index int, e netip.AddrPort, conditions string) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %s-%d
  namespace: %s
  labels: {kubernetes.io/service-name: %s}
addressType: IPv4
ports: [{name: http, port: %d, protocol: TCP}]
endpoints: [{addresses: [%s], conditions: %s}]
`, service, index, namespace, service, e.Port(), e.Addr(), conditions)
}

// indent moves each line two places to the right.
func indent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n")
}
