package binaries

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake is a source tree that builds in a second: its kube-all prints the name
// that it is called by and the version that it was linked with.
var fake = map[string]string{
	"kube-all/go.mod": `module test/kube-all

go 1.26.0

require k8s.io/kubernetes v1.36.3

require k8s.io/component-base v0.36.3

replace k8s.io/kubernetes => ./kubernetes

replace k8s.io/component-base => ./component-base
`,
	"kube-all/go.sum": "",
	"kube-all/main.go": `package main

import (
	"os"
	"path/filepath"

	"k8s.io/component-base/version"
)

func main() { os.Stdout.WriteString(filepath.Base(os.Args[0]) + " " + version.Get() + "\n") }
`,
	"kube-all/kubectl/main.go": `package main

func main() { println("kubectl alone") }
`,
	"kube-all/kubernetes/go.mod":     "module k8s.io/kubernetes\n",
	"kube-all/component-base/go.mod": "module k8s.io/component-base\n",
	"kube-all/component-base/version/version.go": `package version

var gitVersion = "unknown"

func Get() string { return gitVersion }
`,
	"go.mod":        "module test/cluster\n\ngo 1.26.0\n",
	"pause/main.go": "package main\n\nfunc main() { select {} }\n",
}

func newSource(t *testing.T, edit map[string]string) Source {
	t.Helper()
	repository := t.TempDir()
	for _, files := range []map[string]string{fake, edit} {
		for name, content := range files {
			path := filepath.Join(repository, "test", "cluster", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	deep := filepath.Join(repository, "controllers", "status")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	source, err := FindSource(deep)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func newCache(t *testing.T, edit map[string]string) *Cache {
	t.Helper()
	t.Setenv("GOFLAGS", "-mod=mod") // the fake modules are in no go.sum
	cache, err := Open(t.Context(), newSource(t, edit), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func part(t *testing.T, name string) Part {
	t.Helper()
	p, err := ParsePart(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func output(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command(path).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestFindSource(t *testing.T) {
	source := newSource(t, nil)
	for _, from := range []string{source.dir, source.kubeAll(), filepath.Join(source.dir, "..", "..")} {
		got, err := FindSource(from)
		if err != nil || got != source {
			t.Errorf("from %s: %v, %v; want %v", from, got, err, source)
		}
	}
	if _, err := FindSource(t.TempDir()); !errors.Is(err, ErrNoSource) {
		t.Errorf("from elsewhere: %v", err)
	}
}

func TestBuild(t *testing.T) {
	cache := newCache(t, nil)
	if !strings.HasPrefix(filepath.Base(cache.Dir()), "v1.36.3-") || cache.Version() != "v1.36.3" {
		t.Fatalf("cache %s of version %s", cache.Dir(), cache.Version())
	}
	var progress bytes.Buffer
	if err := cache.Build(t.Context(), part(t, "kubectl"), &progress); err != nil {
		t.Fatal(err)
	}
	if got := output(t, filepath.Join(cache.Bin(), "kubectl")); got != "kubectl alone" {
		t.Errorf("kubectl says %q", got)
	}
	if missing := cache.Missing(part(t, "envtest")); len(missing) != 2 {
		t.Errorf("with kubectl alone envtest lacks %q", missing)
	}

	all := part(t, "all")
	if err := cache.Build(t.Context(), all, &progress); err != nil {
		t.Fatal(err)
	}
	if missing := cache.Missing(all); missing != nil {
		t.Errorf("after the build these are missing: %q", missing)
	}
	for _, program := range all.programs {
		if got, want := output(t, filepath.Join(cache.Bin(), program)), program+" v1.36.3"; got != want {
			t.Errorf("%s says %q, want %q", program, got, want)
		}
	}
	if !strings.Contains(progress.String(), "up to 12 minutes on 2 cores") {
		t.Errorf("nothing said about the time:\n%s", progress.String())
	}
	pause, err := elf.Open(filepath.Join(cache.Bin(), "pause"))
	if err != nil {
		t.Fatal(err)
	}
	defer pause.Close()
	if libraries, err := pause.ImportedLibraries(); len(libraries) != 0 || err != nil {
		t.Errorf("pause needs %q (%v), and its image has no libraries", libraries, err)
	}

	progress.Reset()
	if err := cache.Build(t.Context(), all, &progress); err != nil {
		t.Fatal(err)
	}
	if want := "all of v1.36.3 is built: " + cache.Dir() + "\n"; progress.String() != want {
		t.Errorf("second build says %q, want %q", progress.String(), want)
	}
}

func TestBuildFails(t *testing.T) {
	cache := newCache(t, map[string]string{"kube-all/kubectl/main.go": "package main\n\nfunc main() { undefined() }\n"})
	var progress bytes.Buffer
	err := cache.Build(t.Context(), part(t, "kubectl"), &progress)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("error %v does not have the compiler's message", err)
	}
	if missing := cache.Missing(part(t, "kubectl")); len(missing) != 1 {
		t.Errorf("a failed build left %q missing", missing)
	}
}

// TestCacheKey checks that what is built decides where it is kept, and that
// nothing else does.
func TestCacheKey(t *testing.T) {
	base := filepath.Base(newCache(t, nil).Dir())
	for _, tc := range []struct {
		name string
		edit map[string]string
		same bool
	}{
		{"nothing", nil, true},
		{"a test", map[string]string{"kube-all/main_test.go": "package main\n"}, true},
		{"a document", map[string]string{"kube-all/README.md": "words\n"}, true},
		{"line ends", map[string]string{"pause/main.go": strings.ReplaceAll(fake["pause/main.go"], "\n", "\r\n")}, true},
		{"go.sum", map[string]string{"kube-all/go.sum": "example.test/a v1.0.0 h1:x\n"}, false},
		{"the version", map[string]string{"kube-all/go.mod": strings.ReplaceAll(fake["kube-all/go.mod"], "v1.36.3", "v1.36.4")}, false},
		{"a program", map[string]string{"kube-all/main.go": fake["kube-all/main.go"] + "// more\n"}, false},
		{"pause", map[string]string{"pause/main.go": fake["pause/main.go"] + "// more\n"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := filepath.Base(newCache(t, tc.edit).Dir())
			if (got == base) != tc.same {
				t.Errorf("cache %s beside %s, want the same: %v", got, base, tc.same)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	cache := newCache(t, nil)
	if older, err := cache.Older(); older != nil || err != nil {
		t.Errorf("before anything is built: %q, %v", older, err)
	}
	old := filepath.Join(filepath.Dir(cache.Dir()), "v1.36.2-0123456789ab")
	for _, dir := range []string{cache.Dir(), old, filepath.Join(filepath.Dir(old), "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	older, err := cache.Older()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{old}, older); diff != "" {
		t.Errorf("older caches (-want +got):\n%s", diff)
	}
}

func TestParsePart(t *testing.T) {
	if _, err := ParsePart("kubelet"); err == nil || !strings.Contains(err.Error(), "all, envtest, kubectl") {
		t.Errorf("error %v does not name the parts", err)
	}
}

func TestCounter(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	var progress bytes.Buffer
	c := newCounter(&progress, 2431, start)
	c.now = func() time.Time { return now }
	for _, write := range []struct {
		at   time.Duration
		text string
	}{
		{time.Second, "internal/cpu\nk8s.io/a"},
		{20 * time.Second, "pi/core/v1\n"},
		{21 * time.Second, "go: downloading k8s.io/api v0.36.3\n# k8s.io/api\n./x.go:3:5: undefined: y\n"},
		{31 * time.Second, "gopkg.in/yaml.v3\n"},
		{41 * time.Second, "go.etcd.io/bbolt\n"},
	} {
		now = start.Add(write.at)
		if n, err := c.Write([]byte(write.text)); n != len(write.text) || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	want := "  compiled 2 of at most 2431 packages, 20s\n  compiled 4 of at most 2431 packages, 41s\n"
	if diff := cmp.Diff(want, progress.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"# k8s.io/api", "./x.go:3:5: undefined: y"}, c.complaints); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}
