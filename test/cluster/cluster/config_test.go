package cluster

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestNodeConfig(t *testing.T) {
	config := newNodeConfig(layout{dir: "/state"}, IPTables, "local.test/pause:1")
	for _, name := range []string{"containerd.toml", "cni.conflist", "kubelet.yaml", "kube-proxy.yaml"} {
		t.Run(name, func(t *testing.T) {
			got, err := render(name+".tmpl", config)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, string(got))
		})
	}
}

func TestNodeConfigWrite(t *testing.T) {
	l := layout{dir: filepath.Join(t.TempDir(), `a "b" & <c>`)}
	config := newNodeConfig(l, NFTables, "local.test/pause:1")
	if err := config.write(l); err != nil {
		t.Fatal(err)
	}
	var network struct {
		Plugins []struct{ Ipam struct{ DataDir string } }
	}
	content, err := os.ReadFile(l.run("cni", "10-bridge.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &network); err != nil {
		t.Fatal(err)
	}
	// The directory's name has what JSON, YAML and TOML must quote.
	if got := network.Plugins[0].Ipam.DataDir; got != l.run("ipam") {
		t.Errorf("data directory %q, want %q", got, l.run("ipam"))
	}
	for file, line := range map[string]string{
		"containerd.toml": `conf_dir = "` + strings.ReplaceAll(l.run("cni"), `"`, `\"`) + `"`,
		"kubelet.yaml":    `volumePluginDir: "` + strings.ReplaceAll(l.run("kubelet", "volume-plugins"), `"`, `\"`) + `"`,
		"kube-proxy.yaml": `mode: "nftables"`,
	} {
		content, err := os.ReadFile(l.run(file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), line+"\n") {
			t.Errorf("%s lacks the line %s:\n%s", file, line, content)
		}
	}
}

func TestRenderTellsWhatIsMissing(t *testing.T) {
	if _, err := render("kubelet.yaml.tmpl", map[string]string{}); err == nil {
		t.Error("a template was rendered without its values")
	}
	if _, err := render("none.tmpl", nil); err == nil {
		t.Error("a template was rendered that does not exist")
	}
}
