package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	Doc          string
	Standard     bool
	DepOnly      bool
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// tests returns what the package's tests import.
func (p *pkg) tests() []string { return slices.Concat(p.TestImports, p.XTestImports) }

// graph holds packages by import path.
type graph map[string]*pkg

// load lists the packages of the module and all that they depend on.
func load(t *testing.T) graph {
	t.Helper()
	const fields = "-json=ImportPath,Dir,Name,Doc,Standard,DepOnly,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", fields, "./...")
	cmd.Dir = root(t)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	g, err := decode(strings.NewReader(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// decode reads the output of `go list -json`.
func decode(r io.Reader) (graph, error) {
	g := make(graph)
	for dec := json.NewDecoder(r); ; {
		p := new(pkg)
		switch err := dec.Decode(p); {
		case errors.Is(err, io.EOF):
			return g, nil
		case err != nil:
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		g[p.ImportPath] = p
	}
}

// own returns the packages of this module, sorted.
func (g graph) own() []*pkg {
	var out []*pkg
	for _, p := range g {
		if match("./...", p.ImportPath) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return out
}

// root returns the module's directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("not the module's root: %v", err)
	}
	return dir
}

// match tells whether an import path fits a pattern of a rule.
func match(pattern, path string) bool {
	if rest, ok := strings.CutPrefix(pattern, "."); ok {
		pattern = module + rest
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

// standard tells whether a path is the standard library's: g knows, or the first
// element has no dot.
func (g graph) standard(path string) bool {
	if p := g[path]; p != nil {
		return p.Standard
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// violations returns what breaks the rules, each as the chain of imports that
// leads to it.
func (g graph) violations(rules []rule) []string {
	var out []string
	for _, p := range g.own() {
		for _, r := range rules {
			if !matchAny(r.from, p.ImportPath) || matchAny(r.but, p.ImportPath) {
				continue
			}
			if len(r.may) > 0 {
				for _, i := range p.Imports {
					if !g.standard(i) && !matchAny(r.may, i) {
						out = append(out, fmt.Sprintf("%s: %s", r.why, chain(p.ImportPath, i)))
					}
				}
			}
			for _, i := range slices.Concat(p.Imports, p.tests()) {
				if matchAny(r.direct, i) {
					out = append(out, fmt.Sprintf("%s: %s", r.why, chain(p.ImportPath, i)))
				}
			}
			bad := func(path string) bool { return matchAny(r.never, path) && !matchAny(r.unless, path) }
			if c := g.search(p.ImportPath, p.Imports, bad); c != nil {
				out = append(out, fmt.Sprintf("%s: %s", r.why, chain(c...)))
			}
			if c := g.search(p.ImportPath, p.tests(), bad); c != nil {
				out = append(out, fmt.Sprintf("%s (in tests): %s", r.why, chain(c...)))
			}
		}
	}
	return out
}

// search returns the shortest chain from a package by the given imports to one
// that bad holds for, or nil.
func (g graph) search(from string, imports []string, bad func(string) bool) []string {
	type step struct {
		path string
		prev *step
	}
	first := &step{path: from}
	seen := map[string]bool{from: true}
	var queue []*step
	push := func(s *step, paths []string) {
		for _, path := range paths {
			if !seen[path] {
				seen[path] = true
				queue = append(queue, &step{path, s})
			}
		}
	}
	for push(first, imports); len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if bad(s.path) {
			var out []string
			for ; s != nil; s = s.prev {
				out = append(out, s.path)
			}
			slices.Reverse(out)
			return out
		}
		if p := g[s.path]; p != nil {
			push(s, p.Imports)
		}
	}
	return nil
}

// chain prints imports, short within the module.
func chain(paths ...string) string {
	short := make([]string, len(paths))
	for i, p := range paths {
		short[i] = p
		if rest, ok := strings.CutPrefix(p, module+"/"); ok {
			short[i] = rest
		}
	}
	return strings.Join(short, " imports ")
}
