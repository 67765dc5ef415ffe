package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCredentials makes the credentials of a control plane in a directory.
func newCredentials(t *testing.T) layout {
	t.Helper()
	l := layout{dir: t.TempDir()}
	if err := writeCredentials(l, ControlPlane, time.Now()); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCredentialsAreSecret(t *testing.T) {
	l := newCredentials(t)
	files, err := filepath.Glob(l.run("certificates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, l.kubeconfig())
	// An authority, two servers and six clients with their kubeconfigs; the key of tokens.
	if want := 2 + 2*2 + 3*len(clients) + 2 + 1; len(files) != want {
		t.Errorf("%d files, want %d: %q", len(files), want, files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	l := newCredentials(t)
	for _, client := range clients {
		content, err := os.ReadFile(l.kubeconfigOf(client.name))
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := os.ReadFile(l.certificate(client.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			`server: "https://127.0.0.1:16443"`,
			`- name: "` + client.user + `"`,
			"client-certificate-data: " + base64.StdEncoding.EncodeToString(certificate),
		} {
			if !strings.Contains(string(content), line+"\n") {
				t.Errorf("%s lacks %q:\n%s", client.name, line, content)
			}
		}
	}
	admin, err := os.ReadFile(l.kubeconfigOf("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if top, err := os.ReadFile(l.kubeconfig()); err != nil || string(top) != string(admin) {
		t.Errorf("the kubeconfig of the state directory is not the administrator's: %v", err)
	}
}

func TestServer(t *testing.T) {
	for mode, want := range map[Mode]string{ControlPlane: "https://127.0.0.1:16443", Node: "https://10.90.0.2:16443"} {
		if got := server(mode); got != want {
			t.Errorf("mode %s: %s, want %s", mode, got, want)
		}
	}
}

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
