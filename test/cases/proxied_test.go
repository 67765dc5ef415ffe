package cases

import (
	"io"
	"strings"
	"testing"
	"time"
)

const proxyParameters = `apiVersion: headgate.dev/v1alpha1
kind: GatewayParameters
metadata: {name: balanced, namespace: default}
spec: {client: {proxyProtocol: {mode: Required, from: [127.0.0.0/8]}}}
`

const proxyClass = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec:
  controllerName: headgate.dev/gateway-controller
  parametersRef: {group: headgate.dev, kind: GatewayParameters, namespace: default, name: balanced}
`

// Parameters that ask for the PROXY protocol take effect while the gateway runs: new
// connections need a header, and those that are open go on without.
func TestProxyProtocol(t *testing.T) {
	be := newBackend(t, "be")
	g := edge(t, be.manifest(), simpleRoute("a", be))
	forwarded := func(q *request) string {
		return q.get("X-Forwarded-For") + " " + q.get("X-Forwarded-Port")
	}
	old := dial(t, g.addr)
	_, port, _ := strings.Cut(g.addr, ":")
	direct := "127.0.0.1 " + port
	if got := forwarded(seen(t, old.get("a", "/"))); got != direct {
		t.Fatalf("the backend got %s, want %s", got, direct)
	}

	g.apply(t, "parameters.yaml", proxyParameters)
	g.apply(t, "class.yaml", proxyClass)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c := dial(t, g.addr)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		b, _ := io.ReadAll(io.LimitReader(c, 1))
		c.Close()
		if len(b) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("connections without a header are still served")
		}
	}
	old.patient(patience)
	if got := forwarded(seen(t, old.get("a", "/"))); got != direct {
		t.Errorf("on the open connection the backend got %s, want %s", got, direct)
	}
	c := dial(t, g.addr)
	c.send("PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n")
	if got := forwarded(seen(t, c.get("a", "/"))); got != "2001:db8::7 443" {
		t.Errorf("the backend got %s", got)
	}
	if log := g.log.String(); !strings.Contains(log, "the connection does not begin with a header of the PROXY protocol") {
		t.Error("the log says nothing of connections without a header")
	}
}
