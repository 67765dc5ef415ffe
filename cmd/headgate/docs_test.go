package main

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/port"
)

// What docs/troubleshooting.md quotes is what the conditions and the log say.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	said := append(goldenTexts(t), sourceLines(t)...)
	said = append(said, heldTexts()...)
	if saidBy(said, []string{"could not be opened", " by nobody"}) {
		t.Error("everything is said by something")
	}
	quotes := 0
	for i, line := range strings.Split(string(page), "\n") {
		quote, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		quotes++
		if !saidBy(said, strings.Split(quote, "…")) {
			t.Errorf("docs/troubleshooting.md:%d: nothing says %q", i+1, quote)
		}
	}
	if quotes < 30 {
		t.Errorf("the page has %d quotes: is it read?", quotes)
	}
}

// saidBy tells whether a text has the parts, one after the other.
func saidBy(texts, parts []string) bool {
	for _, text := range texts {
		rest, all := text, true
		for _, p := range parts {
			_, after, ok := strings.Cut(rest, p)
			if !ok {
				all = false
				break
			}
			rest = after
		}
		if all {
			return true
		}
	}
	return false
}

// goldenTexts returns every text that a golden case of the compiler expects.
func goldenTexts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../controllers/compile/testdata/*/status.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	var out []string
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case string:
			out = append(out, x)
		case []any:
			for _, y := range x {
				walk(y)
			}
		case map[string]any:
			for _, y := range x {
				walk(y)
			}
		}
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var x any
		if err := yaml.Unmarshal(text, &x); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		walk(x)
	}
	return out
}

// heldTexts returns what is said of holders of a port that the golden cases do not
// have.
func heldTexts() []string {
	var out []string
	for _, h := range []port.Holder{{}, {Self: true, PID: 1}, {PID: 1, Command: "headgate"}} {
		o := compile.Occupied{Err: syscall.EADDRINUSE, At: netip.MustParseAddrPort("10.0.0.5:80"), Holder: h.String(), Advice: h.Advice()}
		out = append(out, o.Error())
	}
	return out
}

// sourceLines returns the lines of the source: what the log says
// stands there whole.
func sourceLines(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"../../controllers", "../../dataplane"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				out = append(out, strings.ReplaceAll(line, `\"`, `"`))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
