package status_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/controllers/status"
	"github.com/headgate/headgate/dataplane/ir"
)

const objects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: headgate
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
`

// report compiles objects from files.
func report(t *testing.T, text string) *compile.Report {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := file.Open(dir, file.Options{Compile: compile.Options{Addresses: compile.Addresses{
		Bind: []netip.Addr{netip.IPv4Unspecified()}, Node: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	in, problems := src.Input()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	_, r := compile.Compile(in)
	return r
}

// list returns the names in a directory.
func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)} }

func write(t *testing.T, d *status.Dir, r *compile.Report) {
	t.Helper()
	if err := d.Write(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

func TestDir(t *testing.T) {
	dir, at := filepath.Join(t.TempDir(), "deep", "status"), newClock()
	d := status.NewDir(dir, at.read)
	write(t, d, report(t, objects))
	want := []string{"gateway_default_edge.yaml", "gatewayclass_headgate.yaml", "httproute_default_web.yaml"}
	if got := list(t, dir); !slices.Equal(got, want) {
		t.Fatalf("files: %q", got)
	}
	const route = `# Written by Headgate. Changes are lost.
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  generation: 1
  name: web
  namespace: default
status:
  parents:
  - conditions:
    - lastTransitionTime: "2026-01-02T03:04:05Z"
      message: Attached to listener http
      observedGeneration: 1
      reason: Accepted
      status: "True"
      type: Accepted
    - lastTransitionTime: "2026-01-02T03:04:05Z"
      message: All references are resolved
      observedGeneration: 1
      reason: ResolvedRefs
      status: "True"
      type: ResolvedRefs
    controllerName: headgate.dev/gateway-controller
    parentRef:
      group: gateway.networking.k8s.io
      kind: Gateway
      name: edge
`
	if got := read(t, dir, "httproute_default_web.yaml"); got != route {
		t.Errorf("the route's status:\n%s", got)
	}
	for _, want := range []string{"value: 192.0.2.1", "attachedRoutes: 1", "name: http", "type: Programmed"} {
		if got := read(t, dir, "gateway_default_edge.yaml"); !strings.Contains(got, want) {
			t.Errorf("the Gateway's status has no %q:\n%s", want, got)
		}
	}
	if got := read(t, dir, "gatewayclass_headgate.yaml"); !strings.Contains(got, "- name: HTTPRouteMethodMatching\n") {
		t.Errorf("the class's status:\n%s", got)
	}
}

// stamp tells whether files were replaced: a replaced one is another file.
func stamp(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	out := make(map[string]os.FileInfo)
	for _, name := range list(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = info
	}
	return out
}

func replaced(before, after map[string]os.FileInfo) (names []string) {
	for name, info := range after {
		if was := before[name]; was == nil || !os.SameFile(was, info) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestOnlyChanges: a file is written when its status changed, by this process or
// by one before.
func TestOnlyChanges(t *testing.T) {
	dir, at := t.TempDir(), newClock()
	first := report(t, objects)
	d := status.NewDir(dir, at.read)
	write(t, d, first)
	before := stamp(t, dir)

	at.now = at.now.Add(time.Hour)
	write(t, d, first)
	write(t, d, report(t, objects)) // equal, and other pointers
	write(t, status.NewDir(dir, at.read), first)
	if got := replaced(before, stamp(t, dir)); got != nil {
		t.Errorf("written without a change: %q", got)
	}

	// A condition that turns has a new time; the others keep theirs.
	failed := first.Applied(ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": syscall.EADDRINUSE}})
	write(t, d, failed)
	if got := replaced(before, stamp(t, dir)); !slices.Equal(got, []string{"gateway_default_edge.yaml"}) {
		t.Errorf("written after a change of the Gateway: %q", got)
	}
	text := read(t, dir, "gateway_default_edge.yaml")
	if strings.Count(text, "2026-01-02T04:04:05Z") != 4 || strings.Count(text, "2026-01-02T03:04:05Z") != 2 {
		t.Errorf("the times:\n%s", text)
	}
	// A new process knows since when.
	at.now = at.now.Add(time.Hour)
	write(t, status.NewDir(dir, at.read), failed)
	if read(t, dir, "gateway_default_edge.yaml") != text {
		t.Error("another process changes the times")
	}
	write(t, d, first)
	if text := read(t, dir, "gateway_default_edge.yaml"); strings.Count(text, "2026-01-02T05:04:05Z") != 4 {
		t.Errorf("the times:\n%s", text)
	}
}

// TestStale: the files of objects that are gone go too; other files stay.
func TestStale(t *testing.T) {
	dir, at := t.TempDir(), newClock()
	write(t, status.NewDir(dir, at.read), report(t, objects))
	for name, text := range map[string]string{"httproute_default_mine.yaml": "kind: HTTPRoute\n", "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := status.NewDir(dir, at.read) // another process removes them too
	write(t, d, &compile.Report{})
	if got := list(t, dir); !slices.Equal(got, []string{"httproute_default_mine.yaml", "notes.txt"}) {
		t.Errorf("files: %q", got)
	}
	write(t, d, report(t, objects))
	if got := list(t, dir); len(got) != 5 {
		t.Errorf("files: %q", got)
	}
}

// TestNames: two objects never share a file, and every file has a name that a file
// system takes.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 240)
	r := &compile.Report{}
	for _, n := range []types.NamespacedName{
		{Namespace: "a-b", Name: "c"}, {Namespace: "a", Name: "b-c"}, {Namespace: "a", Name: "b.c"},
		{Namespace: strings.Repeat("n", 63), Name: long + "x"}, {Namespace: strings.Repeat("n", 63), Name: long + "y"},
	} {
		r.Routes = append(r.Routes, &compile.RouteReport{Kind: "HTTPRoute", NamespacedName: n})
	}
	dir := t.TempDir()
	write(t, status.NewDir(dir, newClock().read), r)
	if got := list(t, dir); len(got) != len(r.Routes) {
		t.Errorf("files: %q", got)
	}
}

// TestTimesByParent: each parent's conditions have their own times.
func TestTimesByParent(t *testing.T) {
	parent := func(name, section, status string) gatewayv1.RouteParentStatus {
		s := gatewayv1.SectionName(section)
		return gatewayv1.RouteParentStatus{
			ParentRef:  gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name), SectionName: &s},
			Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionStatus(status)}},
		}
	}
	route := func(parents ...gatewayv1.RouteParentStatus) *compile.Report {
		return &compile.Report{Routes: []*compile.RouteReport{{
			Kind: "HTTPRoute", NamespacedName: types.NamespacedName{Namespace: "a", Name: "b"}, Parents: parents,
		}}}
	}
	dir, at := t.TempDir(), newClock()
	d := status.NewDir(dir, at.read)
	write(t, d, route(parent("g", "a", "True"), parent("g", "b", "True")))
	at.now = at.now.Add(time.Hour)
	write(t, d, route(parent("g", "b", "True"), parent("g", "a", "False"), parent("h", "a", "True")))
	text := read(t, dir, "httproute_a_b.yaml")
	if strings.Count(text, "T03:04:05Z") != 1 || strings.Count(text, "T04:04:05Z") != 2 {
		t.Errorf("the times:\n%s", text)
	}
}

// TestFailure: what can't be written is an error, and is written later.
func TestFailure(t *testing.T) {
	base := t.TempDir()
	blocked := filepath.Join(base, "status")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := status.NewDir(blocked, newClock().read)
	r := report(t, objects)
	if err := d.Write(context.Background(), r); err == nil {
		t.Fatal("a file in the place of the directory")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	write(t, d, r)

	// A directory stands where a file should: that one is an error, the rest is
	// written.
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "gateway_default_edge.yaml", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := status.NewDir(dir, newClock().read).Write(context.Background(), r)
	if !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("error: %v", err)
	}
	if got := list(t, dir); len(got) != 3 {
		t.Errorf("files: %q", got)
	}
}

// TestMarker: what is written is never read as configuration.
func TestMarker(t *testing.T) {
	dir := t.TempDir()
	write(t, status.NewDir(dir, newClock().read), report(t, objects))
	src, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, problems := src.Input()
	if len(problems) > 0 || len(in.Gateways)+len(in.HTTPRoutes)+len(in.Classes) > 0 {
		t.Errorf("read as configuration: %v", problems)
	}
}
