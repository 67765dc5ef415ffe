package cluster

import (
	"encoding/base64"
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
