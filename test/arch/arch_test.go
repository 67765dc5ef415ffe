package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImports(t *testing.T) {
	g := load(t)
	if len(g.own()) == 0 {
		t.Fatal("go list found no package of this module")
	}
	for _, v := range g.violations(importRules) {
		t.Error(v)
	}
	// What go list says is followed to the end.
	gnet := func(path string) bool { return match("github.com/panjf2000/gnet/...", path) }
	if command := module + "/cmd/headgate"; g.search(command, g[command].Imports, gnet) == nil {
		t.Error("the command does not reach gnet: the graph has holes")
	}
}

// The rules find what they forbid: one made-up import at a time.
func TestImportsAreFound(t *testing.T) {
	const far = "example.com/far"
	for name, c := range map[string]struct {
		from, imports string
		tests         bool
		want          string
	}{
		"data plane to Kubernetes":            {"dataplane/route", "k8s.io/api/core/v1", true, "the data plane knows neither Kubernetes nor who drives it (in tests): dataplane/route imports k8s.io/api/core/v1"},
		"data plane through another":          {"dataplane/reactor", far, true, "the data plane knows neither Kubernetes nor who drives it (in tests): dataplane/reactor imports example.com/far imports sigs.k8s.io/yaml"},
		"data plane to the control plane":     {"dataplane", module + "/controllers/compile", true, "the data plane knows neither Kubernetes nor who drives it (in tests): dataplane imports controllers/compile"},
		"control plane to the data plane":     {"controllers", module + "/dataplane/route", false, "the control plane knows of the data plane only what it compiles to: controllers imports dataplane/route"},
		"control plane to the IR":             {"controllers/compile", module + "/dataplane/ir", false, ""},
		"command to all":                      {"cmd/headgate", module + "/dataplane", false, ""},
		"anything to a command":               {"controllers", module + "/cmd/headgate", false, "nothing imports the commands: controllers imports cmd/headgate"},
		"anything to a suite":                 {"cmd/headgate", module + "/test/cases", false, "nothing imports the suites: cmd/headgate imports test/cases"},
		"suite to suite":                      {"test/bench", module + "/test/cases", false, ""},
		"gnet beside the reactor":             {"controllers", "github.com/panjf2000/gnet/v2", false, "only the reactor knows gnet: controllers imports github.com/panjf2000/gnet/v2"},
		"gnet in a test":                      {"cmd/headgate", "github.com/panjf2000/gnet/v2", true, "only the reactor knows gnet: cmd/headgate imports github.com/panjf2000/gnet/v2"},
		"gnet through the reactor":            {"dataplane", module + "/dataplane/reactor", false, ""},
		"gnet in the reactor":                 {"dataplane/reactor", "github.com/panjf2000/gnet/v2/pkg/netpoll", false, ""},
		"the Engine in the reactor":           {"dataplane/reactor", "github.com/panjf2000/gnet/v2", false, "the reactor knows descriptors, not HTTP: dataplane/reactor imports github.com/panjf2000/gnet/v2"},
		"the IR to anything":                  {"dataplane/ir", "golang.org/x/net/idna", false, "the IR is the contract: plain data: dataplane/ir imports golang.org/x/net/idna"},
		"the IR to the standard library":      {"dataplane/ir", "net/netip", false, ""},
		"its tests to anything":               {"dataplane/ir", "golang.org/x/net/idna", true, ""},
		"the model to anything":               {"dataplane/ewma", module + "/dataplane/ir", false, "the model is arithmetic: dataplane/ewma imports dataplane/ir"},
		"upstream to the reactor":             {"dataplane/upstream", module + "/dataplane/reactor", false, "an upstream sees its connections through an interface of its own, not the reactor: dataplane/upstream imports dataplane/reactor"},
		"compile to a client":                 {"controllers/compile", "sigs.k8s.io/controller-runtime/pkg/client", false, "compiling is pure: types, no clients: controllers/compile imports sigs.k8s.io/controller-runtime/pkg/client"},
		"a package that starts with the same": {"dataplane/ir", module + "/dataplane/irregular", false, "the IR is the contract: plain data: dataplane/ir imports dataplane/irregular"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pkg{ImportPath: module + "/" + c.from}
			if c.tests {
				p.XTestImports = []string{c.imports}
			} else {
				p.Imports = []string{c.imports}
			}
			g := graph{
				module + "/dataplane/reactor": {
					ImportPath: module + "/dataplane/reactor", Imports: []string{"github.com/panjf2000/gnet/v2/pkg/socket"},
				},
				far:         {ImportPath: far, Imports: []string{"sigs.k8s.io/yaml"}},
				"net/netip": {ImportPath: "net/netip", Standard: true},
			}
			g[p.ImportPath] = p
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			got := g.violations(importRules)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// Each package says what it is for.
func TestDocComments(t *testing.T) {
	for _, p := range load(t).own() {
		if fault := docFault(p); fault != "" {
			t.Errorf("%s: %s", chain(p.ImportPath), fault)
		}
	}
}

func docFault(p *pkg) string {
	begin := "Package " + p.Name + " "
	if p.Name == "main" {
		begin = "Command " + p.ImportPath[strings.LastIndexByte(p.ImportPath, '/')+1:] + " "
	}
	switch {
	case len(p.GoFiles)+len(p.CgoFiles) == 0:
		return "has tests only: it needs a doc.go"
	case p.Doc == "":
		return "has no doc comment"
	case !strings.HasPrefix(p.Doc, begin):
		return "its doc comment should start with " + begin
	}
	return ""
}

func TestDocFaults(t *testing.T) {
	files := []string{"a.go"}
	for name, c := range map[string]struct {
		pkg   pkg
		fault bool
	}{
		"good":         {pkg{ImportPath: "x/a", Name: "a", GoFiles: files, Doc: "Package a is."}, false},
		"good command": {pkg{ImportPath: "x/a", Name: "main", GoFiles: files, Doc: "Command a is."}, false},
		"none":         {pkg{ImportPath: "x/a", Name: "a", GoFiles: files}, true},
		"tests only":   {pkg{ImportPath: "x/a", Name: "a", Doc: "Package a is."}, true},
		"other name":   {pkg{ImportPath: "x/a", Name: "a", GoFiles: files, Doc: "Package ab is."}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := docFault(&c.pkg); (got != "") != c.fault {
				t.Errorf("fault %q", got)
			}
		})
	}
}

// A package's name says what is in it, and hides nothing of the standard library.
func TestPackageNames(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := strings.Fields(string(out))
	if nameFault("helpers", std) == "" || nameFault("time", std) == "" || nameFault("route", std) != "" {
		t.Error("the rule does not tell good names from bad ones")
	}
	for _, p := range load(t).own() {
		if fault := nameFault(p.Name, std); fault != "" {
			t.Errorf("%s: %s", chain(p.ImportPath), fault)
		}
	}
}

func nameFault(name string, std []string) string {
	switch {
	case slices.Contains(bannedNames, name):
		return "the name says nothing"
	case slices.Contains(std, name):
		return "the name is the standard library's"
	}
	return ""
}

// sources calls fn with every Go file of the tree that somebody wrote.
func sources(t *testing.T, fn func(path, text string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != top && (name[0] == '.' || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated.") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		fn(short, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSources(t *testing.T) {
	files := 0
	sources(t, func(path, text string) {
		files++
		for _, fault := range sourceFaults(path, text) {
			t.Errorf("%s: %s", path, fault)
		}
	})
	if files == 0 {
		t.Error("no Go file was found")
	}
}

// sourceFaults returns what a file must not have.
func sourceFaults(path, text string) []string {
	var faults []string
	limit := maxLines
	if strings.HasSuffix(path, "_test.go") {
		limit = maxTestLines
	}
	if n := strings.Count(text, "\n"); n > limit {
		faults = append(faults, "is too long: two nouns?")
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return append(faults, err.Error())
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name == "init" {
			faults = append(faults, "has an init function: pass it in")
		}
	}
	for _, i := range file.Imports {
		if i.Name != nil && i.Name.Name == "." {
			faults = append(faults, "imports into its own scope")
		}
	}
	return faults
}

func TestSourceFaults(t *testing.T) {
	long := func(n int) string { return "package a\n" + strings.Repeat("\n", n-1) }
	for name, c := range map[string]struct {
		path, text string
		faults     int
	}{
		"good":            {"a.go", "package a\n\ntype T int\n\nfunc (T) init() {}\n", 0},
		"init":            {"a.go", "package a\n\nfunc init() {}\n\nfunc init() {}\n", 2},
		"dot import":      {"a.go", "package a\n\nimport . \"time\"\n", 1},
		"broken":          {"a.go", "package", 1},
		"long":            {"a.go", long(maxLines + 1), 1},
		"just not long":   {"a.go", long(maxLines), 0},
		"long test":       {"a_test.go", long(maxTestLines + 1), 1},
		"just not a test": {"a_test.go", long(maxTestLines), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sourceFaults(c.path, c.text); len(got) != c.faults {
				t.Errorf("%q, want %d faults", got, c.faults)
			}
		})
	}
}
