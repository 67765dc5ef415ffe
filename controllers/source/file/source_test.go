package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/controllers/compile"
)

// folder is a directory for a test.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.path, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) link(target, name string) {
	f.t.Helper()
	if err := os.Symlink(target, filepath.Join(f.path, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) open(o Options) *Source {
	f.t.Helper()
	s, err := Open(f.path, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {v: %q}\n", name, value)
}

// values lists the ConfigMaps of an input as "name=value@generation".
func values(in compile.Input) string {
	var out []string
	for _, c := range in.ConfigMaps {
		out = append(out, fmt.Sprintf("%s=%s@%d", c.Name, c.Data["v"], c.Generation))
	}
	return strings.Join(out, " ")
}

// said lists problems as "file:line message", with files below the folder.
func (f folder) said(ps []compile.Problem) []string {
	var out []string
	for _, p := range ps {
		rel, err := filepath.Rel(f.path, p.File)
		if err != nil {
			f.t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s:%d %s", rel, p.Line, strings.ReplaceAll(p.Message, f.path+"/", "")))
	}
	return out
}

func (f folder) expect(s *Source, want string, problems ...string) compile.Input {
	f.t.Helper()
	in, ps := s.Input()
	if got := values(in); got != want {
		f.t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff(problems, f.said(ps)); diff != "" {
		f.t.Errorf("problems (-want +got):\n%s", diff)
	}
	return in
}

func TestOpen(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "gone"), Options{}); err == nil {
		t.Error("a directory that is not there")
	}
	f := newFolder(t)
	f.write("a", "")
	if _, err := Open(filepath.Join(f.path, "a"), Options{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file: %v", err)
	}
}

// TestTree checks which files are read.
func TestTree(t *testing.T) {
	f := newFolder(t)
	f.write("b.yaml", configMap("b", "1"))
	f.write("a.yml", configMap("a", "1"))
	f.write("deep/er/c.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"v": "1"}}`)
	f.write("list.yaml", "apiVersion: v1\nkind: List\nitems:\n"+
		"- {apiVersion: v1, kind: ConfigMap, metadata: {name: l1}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l2}}\n")
	f.write("readme.md", "not: [yaml")
	f.write(".hidden.yaml", "not: [yaml")
	f.write(".git/x.yaml", "not: [yaml")
	f.write("status/x.yaml", "not: [yaml")
	f.write("moved-status.yaml", "# Written by Headgate. Changes are lost.\nnot: [yaml")
	f.write("empty.yaml", "")
	f.write("comment.yaml", "# nothing\n---\n---\n# here\n")
	// A ConfigMap's mount: links by way of a hidden directory.
	f.write("mount/..2024/m.yaml", configMap("m", "1"))
	f.link("..2024", "mount/..data")
	f.link("..data/m.yaml", "mount/m.yaml")
	// Links up and about are followed once.
	f.link("..", "deep/up")
	f.link("deep", "again")
	s := f.open(Options{})
	f.expect(s, "a=1@1 b=1@1 c=1@1 l1=@1 l2=@1 m=1@1")

	f.link("nowhere.yaml", "dangling.yaml")
	if err := syscall.Mkfifo(filepath.Join(f.path, "pipe.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.expect(s, "a=1@1 b=1@1 c=1@1 l1=@1 l2=@1 m=1@1",
		"dangling.yaml:0 can't be read: no such file or directory", "pipe.yaml:0 can't be read: it is not a regular file")
}

// TestStatusDir checks that the status directory is left out however it is named.
func TestStatusDir(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", configMap("a", "1"))
	f.write("out/b.yaml", configMap("b", "1"))
	t.Chdir(f.path)
	for _, dir := range []string{"out", "./out/", filepath.Join(f.path, "out")} {
		s, err := Open(".", Options{StatusDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if in, _ := s.Input(); values(in) != "a=1@1" {
			t.Errorf("with status in %q: %s", dir, values(in))
		}
	}
}

// TestChanges follows a directory through good and bad times.
func TestChanges(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", configMap("a", "1")+"---\n"+configMap("b", "1"))
	f.write("c.yaml", configMap("c", "1"))
	s := f.open(Options{})
	first := f.expect(s, "a=1@1 b=1@1 c=1@1")

	// What says the same is the same pointer, wherever it stands.
	f.write("a.yaml", "# A comment.\n---\n"+configMap("b", "1"))
	f.write("d.yaml", strings.Replace(configMap("a", "1"), "kind", "# moved\nkind", 1))
	second := f.expect(s, "a=1@1 b=1@1 c=1@1")
	for i := range first.ConfigMaps {
		if first.ConfigMaps[i] != second.ConfigMaps[i] {
			t.Errorf("%s is a new pointer", first.ConfigMaps[i].Name)
		}
	}
	if first.Namespaces[0] != second.Namespaces[0] {
		t.Error("the namespace is a new pointer")
	}

	// A change counts up.
	f.write("c.yaml", configMap("c", "2"))
	third := f.expect(s, "a=1@1 b=1@1 c=2@2")
	if third.ConfigMaps[2] == second.ConfigMaps[2] || second.ConfigMaps[2].Generation != 1 {
		t.Error("an object was changed in place")
	}

	// A broken file counts as it was, all of it; the others go on.
	f.write("a.yaml", configMap("b", "2")+"---\nkind: [")
	f.write("c.yaml", configMap("c", "3"))
	f.expect(s, "a=1@1 b=1@1 c=3@3",
		"a.yaml:6 is not YAML: did not find expected node content; the last version of the file without an error is in force")
	f.write("a.yaml", configMap("b", "2")+"---\n"+configMap("e", "1"))
	f.expect(s, "a=1@1 b=2@2 c=3@3 e=1@1")

	// Warnings don't break a file.
	f.write("a.yaml", configMap("b", "3")+"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n")
	f.expect(s, "a=1@1 b=3@3 c=3@3", "a.yaml:6 Deployment x of apps/v1 is not a kind that Headgate reads; it is ignored")

	// What is gone is gone, and starts again.
	f.remove("c.yaml")
	f.remove("a.yaml")
	f.expect(s, "a=1@1")
	f.write("c.yaml", configMap("c", "9"))
	f.expect(s, "a=1@1 c=9@1")

	// A directory that can't be found keeps all.
	if err := os.Rename(f.path, f.path+".away"); err != nil {
		t.Fatal(err)
	}
	in, ps := s.Input()
	if values(in) != "a=1@1 c=9@1" || len(ps) != 1 {
		t.Errorf("without the directory: %s %v", values(in), ps)
	}
	if err := os.Rename(f.path+".away", f.path); err != nil {
		t.Fatal(err)
	}
	f.expect(s, "a=1@1 c=9@1")
}

// TestBrokenFromTheStart: without a good version, the faultless objects count.
func TestBrokenFromTheStart(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", configMap("a", "1")+"---\nkind: [\n---\n"+configMap("b", "1")+"---\n"+configMap("B", "1"))
	s := f.open(Options{})
	bad := []string{
		"a.yaml:6 is not YAML: did not find expected node content",
		`a.yaml:15 "B" is not a name: use up to 253 lower case letters, digits, hyphens and dots`,
	}
	f.expect(s, "a=1@1 b=1@1", bad...)
	f.expect(s, "a=1@1 b=1@1", bad...)
}

func TestDuplicates(t *testing.T) {
	f := newFolder(t)
	f.write("b.yaml", configMap("x", "b"))
	f.write("a.yaml", configMap("z", "1")+"---\n"+configMap("x", "a"))
	s := f.open(Options{})
	f.expect(s, "x=a@1 z=1@1", "b.yaml:1 is also in a.yaml:6, which counts; remove one")
	// The other one takes over; later it changes hands again. Nobody's object is
	// changed under him.
	f.write("a.yaml", configMap("z", "1"))
	second := f.expect(s, "x=b@2 z=1@1")
	f.write("a.yaml", configMap("x", "a"))
	f.expect(s, "x=a@3", "b.yaml:1 is also in a.yaml:1, which counts; remove one")
	f.remove("a.yaml")
	f.expect(s, "x=b@4")
	if second.ConfigMaps[0].Generation != 2 {
		t.Error("an object was changed in place")
	}
}

func TestNamespaces(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: declared, labels: {team: blue}}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: declared}\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: implied}\n---\n"+configMap("a", ""))
	in, ps := f.open(Options{}).Input()
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	got := make(map[string]map[string]string)
	for _, n := range in.Namespaces {
		got[n.Name] = n.Labels
	}
	const label = "kubernetes.io/metadata.name"
	want := map[string]map[string]string{
		"declared": {"team": "blue", label: "declared"}, "implied": {label: "implied"}, "default": {label: "default"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestServerFields checks that what only an API server sets is not believed.
func TestServerFields(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: edge
  uid: abc
  resourceVersion: "7"
  generation: 99
  creationTimestamp: "2025-01-01T00:00:00Z"
  deletionTimestamp: "2025-01-01T00:00:00Z"
  managedFields: [{manager: x}]
spec:
  gatewayClassName: headgate
  listeners: [{name: http, port: 80, protocol: HTTP}]
status:
  addresses: [{value: 10.0.0.1}]
`)
	in, ps := f.open(Options{}).Input()
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	g := in.Gateways[0]
	if g.UID != "" || g.ResourceVersion != "" || g.Generation != 1 || g.DeletionTimestamp != nil || g.ManagedFields != nil || g.Status.Addresses != nil {
		t.Errorf("%+v", g)
	}
	if g.CreationTimestamp.Year() != 2025 {
		t.Errorf("created %v: age is the author's to say", g.CreationTimestamp)
	}
}

func TestLocateAndLint(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n")
	f.write("b.yaml", `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: none
addressType: IPv4
endpoints: []
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: gone
  labels:
    kubernetes.io/service-name: gone
addressType: IPv4
endpoints: []
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: good
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
endpoints: []
`)
	s := f.open(Options{})
	_, ps := s.Input()
	if diff := cmp.Diff([]string{
		"b.yaml:3 belongs to no Service; name it in the label kubernetes.io/service-name",
		"b.yaml:12 belongs to Service default/gone, which does not exist",
	}, f.said(ps)); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		p    compile.Problem
		line int
	}{
		{compile.Problem{Kind: "Service", Namespace: "default", Name: "web", Field: "spec.ports[0].port"}, 7},
		{compile.Problem{Kind: "Service", Namespace: "default", Name: "web"}, 1},
		{compile.Problem{Kind: "EndpointSlice", Namespace: "default", Name: "good", Field: "addressType"}, 23},
		{compile.Problem{Kind: "Service", Namespace: "default", Name: "other"}, 0},
	} {
		s.Locate(&tt.p)
		if tt.p.Line != tt.line || (tt.p.File == "") != (tt.line == 0) {
			t.Errorf("%s %s is at %s:%d, want %d", tt.p.Object(), tt.p.Field, tt.p.File, tt.p.Line, tt.line)
		}
	}
}

func TestLimits(t *testing.T) {
	f := newFolder(t)
	f.write(strings.Repeat("d/", maxDepth+2)+"a.yaml", configMap("a", "1"))
	big, err := os.Create(filepath.Join(f.path, "big.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	if err := big.Truncate(maxFileSize + 1); err != nil {
		t.Fatal(err)
	}
	_, ps := f.open(Options{}).Input()
	got := strings.Join(f.said(ps), "\n")
	if !strings.Contains(got, "big.yaml:0 can't be read: it has more than") || !strings.Contains(got, "directories deep") {
		t.Error(got)
	}
}
