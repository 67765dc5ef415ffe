package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// newAPIServer starts a server with the API server's certificate that wants a
// client's, and returns a client of it.
func newAPIServer(t *testing.T, handler http.HandlerFunc) *client {
	t.Helper()
	l := newCredentials(t)
	authority, err := os.ReadFile(l.certificate("ca"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(l.certificate("kube-apiserver"), l.key("kube-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	api, err := newAPIClient(l, ControlPlane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.close)
	api.base = s.URL // https://127.0.0.1 and another port
	return api
}

func TestAPIClient(t *testing.T) {
	var user string
	ready := false
	api := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		user = r.TLS.PeerCertificates[0].Subject.String()
		if r.URL.Path != "/readyz" || !ready {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	if err := api.ready(t.Context()); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("before it is ready: %v", err)
	}
	ready = true
	if err := api.ready(t.Context()); err != nil {
		t.Error(err)
	}
	if want := "CN=headgate-test-admin,O=system:masters"; user != want {
		t.Errorf("asked as %s, want %s", user, want)
	}
}

func TestNodeReady(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
		err  string
	}{
		{"ready", `{"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}}`, ""},
		{"not ready", `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no CNI"}]}}`, "no CNI"},
		{"new", `{"status":{}}`, "has not said"},
		{"garbage", `{`, "unexpected end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/nodes/node1" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				fmt.Fprint(w, tc.body)
			})
			err := api.nodeReady(t.Context())
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	probe := newHealthClient(s.URL, nil)
	if err := probe.get(t.Context(), "/healthz", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a program with a certificate of its own: %v, want its 404", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := probe.get(ended, "/healthz", nil); err == nil {
		t.Error("it was asked after the context had ended")
	}
}
