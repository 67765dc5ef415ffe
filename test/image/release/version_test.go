package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTag(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "9896b23-dirty": "9896b23-dirty", "v1.2.3+k3s1": "v1.2.3-k3s1", "release/é 1": "release-1",
		"-.x": "x", "...": "", "": "", strings.Repeat("a", 200): strings.Repeat("a", 128),
	} {
		if got := Tag(version); got != want {
			t.Errorf("tag of %q is %q, want %q", version, got, want)
		}
	}
}

func TestParsePlatform(t *testing.T) {
	for _, p := range All() {
		if got, err := ParsePlatform(p.String()); got != p || err != nil {
			t.Errorf("%s became %v, %v", p, got, err)
		}
	}
	if got, err := ParsePlatform("linux/arm64/v8"); got.Arch != "arm64" || err != nil {
		t.Errorf("linux/arm64/v8 became %v, %v", got, err)
	}
	for _, s := range []string{"", "amd64", "linux/arm", "linux/arm/v6", "windows/amd64"} {
		if _, err := ParsePlatform(s); err == nil || !strings.Contains(err.Error(), "linux/arm/v7") {
			t.Errorf("%q: error %v does not name what there is", s, err)
		}
	}
}

func TestFindSource(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "test", "image")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if _, err := FindSource(t.Context(), deep, "v1", ""); err == nil || !strings.Contains(err.Error(), "not in a checkout") {
		t.Errorf("outside: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module github.com/headgate/headgate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := FindSource(t.Context(), deep, "v1", "abc")
	if err != nil || s.Dir != dir || !s.Created.Equal(created) || s.Revision != "abc" || s.Reference() != Name+":v1" {
		t.Errorf("source %+v, %v", s, err)
	}
	for _, tc := range []struct{ version, epoch, want string }{
		{"", "1", "give it with -version"},
		{"a b", "1", "spaces or quotes"},
		{"--", "1", "no letter or digit"},
		{"v1", "now", "not a number"},
		{"v1", "-1", "not a number"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", tc.epoch)
		if _, err := FindSource(t.Context(), deep, tc.version, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("version %q at %q: error %v, want one with %q", tc.version, tc.epoch, err, tc.want)
		}
	}
	if err := os.Unsetenv("SOURCE_DATE_EPOCH"); err != nil { // Setenv above restores it
		t.Fatal(err)
	}
	if _, err := FindSource(t.Context(), deep, "v1", ""); err == nil || !strings.Contains(err.Error(), "give it in SOURCE_DATE_EPOCH") {
		t.Errorf("without git and time: %v", err)
	}
}
