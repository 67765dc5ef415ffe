package compile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/dataplane/ir"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenMark starts the files that a case expects; the reader of files leaves such
// files out, so that every case is a directory to serve.
const goldenMark = "# Written by Headgate. Run the test with -update.\n"

// caseOptions stand in the first line of in.yaml, behind "# options: ".
type caseOptions struct {
	Bind []string `json:"bind"`
	Node []string `json:"node"`
	Pool []string `json:"pool"`
	// Service is the Service by which clients come, in namespace default; Ingress
	// is what its status says.
	Service string   `json:"service"`
	Ingress []string `json:"ingress"`
	// Unchecked leaves out the checks of the CRDs, for what an API server with
	// other CRDs could let through.
	Unchecked bool `json:"unchecked"`
	// Untrusted treats endpoints as in a cluster.
	Untrusted bool     `json:"untrusted"`
	Bundles   []string `json:"bundles"`
	// Fail are sockets that can't be opened, with the errno's name.
	Fail map[string]string `json:"fail"`
	// Refuse is the error of a data plane that takes nothing.
	Refuse string `json:"refuse"`
	// Restart is what the process must be restarted for.
	Restart []ir.Setting `json:"restart"`
	// MissingCRDs are what the cluster lacks.
	MissingCRDs []string `json:"missingCRDs"`
	// Balancers are the addresses of other Services of type LoadBalancer, by
	// "namespace/name".
	Balancers map[string][]string `json:"balancers"`
	// Held says who has the port of a socket, and Diverted where connections were
	// tried that did not come.
	Held     map[string]compile.Occupied `json:"held"`
	Diverted map[string][]netip.AddrPort `json:"diverted"`
	// Refused says that the diverted ones were refused.
	Refused bool `json:"refused"`
}

func (o caseOptions) compile(t *testing.T) compile.Options {
	t.Helper()
	addrs := func(list []string) (out []netip.Addr) {
		for _, s := range list {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	c := compile.Options{BundleVersions: o.Bundles, MissingCRDs: o.MissingCRDs}
	c.Addresses.Bind, c.Addresses.Node = addrs(o.Bind), addrs(o.Node)
	for _, s := range o.Pool {
		c.Addresses.Pool = append(c.Addresses.Pool, netip.MustParsePrefix(s))
	}
	if o.Service != "" {
		c.Addresses.Service = types.NamespacedName{Namespace: "default", Name: o.Service}
	}
	return c
}

// balance puts the addresses of load balancers into the status of the Services
// that have one: a file can't say them.
func (o caseOptions) balance(in compile.Input) {
	for _, s := range in.Services {
		for _, ip := range o.Balancers[s.Namespace+"/"+s.Name] {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		if s.Name != o.Service {
			continue
		}
		for _, at := range o.Ingress {
			ingress := corev1.LoadBalancerIngress{Hostname: at}
			if _, err := netip.ParseAddr(at); err == nil {
				ingress = corev1.LoadBalancerIngress{IP: at}
			}
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, ingress)
		}
	}
}

func (o caseOptions) result(t *testing.T) ir.ApplyResult {
	t.Helper()
	r := ir.ApplyResult{Restart: o.Restart}
	if o.Refuse != "" {
		r.Err = errors.New(o.Refuse)
	}
	for name, errno := range o.Fail {
		if r.Sockets == nil {
			r.Sockets = make(map[string]error)
		}
		e, ok := map[string]syscall.Errno{
			"EADDRINUSE": syscall.EADDRINUSE, "EADDRNOTAVAIL": syscall.EADDRNOTAVAIL, "EACCES": syscall.EACCES,
			"EAFNOSUPPORT": syscall.EAFNOSUPPORT, "EMFILE": syscall.EMFILE, "EINVAL": syscall.EINVAL,
		}[errno]
		if !ok {
			t.Fatalf("unknown errno %q", errno)
		}
		r.Sockets[name] = fmt.Errorf("bind %s: %w", name, e)
		if h, held := o.Held[name]; held {
			h.Err = r.Sockets[name]
			r.Sockets[name] = &h
		}
	}
	for name, to := range o.Diverted {
		if r.Sockets == nil {
			r.Sockets = make(map[string]error)
		}
		r.Sockets[name] = &compile.Diverted{To: to, Refused: o.Refused}
	}
	return r
}

// loadCase reads a case's input.
func loadCase(t *testing.T, dir string) (compile.Input, []compile.Problem, *file.Source, caseOptions) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := caseOptions{Bind: []string{"0.0.0.0"}, Node: []string{"192.0.2.1"}}
	first, _, _ := strings.Cut(string(text), "\n")
	if opts, ok := strings.CutPrefix(first, "# options: "); ok {
		if err := yaml.UnmarshalStrict([]byte(opts), &o); err != nil {
			t.Fatalf("options: %v", err)
		}
	}
	src, err := file.Open(dir, file.Options{Compile: o.compile(t), Unchecked: o.Unchecked})
	if err != nil {
		t.Fatal(err)
	}
	in, problems := src.Input()
	in.Options.TrustEndpoints = !o.Untrusted
	o.balance(in)
	for _, s := range in.Secrets {
		certify(t, s)
	}
	return in, problems, src, o
}

// TestGolden compiles every directory of testdata.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, in := range dirs {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			input, problems, src, o := loadCase(t, dir)
			snap, report := compile.Compile(input)
			if err := snap.Validate(); err != nil {
				t.Errorf("the snapshot is invalid: %v", err)
			}
			report = report.Applied(o.result(t))
			problems = append(problems, report.Problems...)
			for i := range problems {
				src.Locate(&problems[i])
			}
			compile.SortProblems(problems)
			golden(t, filepath.Join(dir, "out.yaml"), render(reflect.ValueOf(snap)))
			golden(t, filepath.Join(dir, "status.yaml"), renderReport(report, problems))
		})
	}
}

// golden compares a value, as YAML, with a file.
func golden(t *testing.T, path string, value any) {
	t.Helper()
	body, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	got := append([]byte(goldenMark), body...)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}

// render turns the parts of a snapshot into plain values. What is zero is left
// out.
func render(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case *time.Duration:
		return x.String()
	case time.Time:
		return x.UTC().Format(time.RFC3339)
	case fmt.Stringer:
		return x.String()
	case []byte:
		sum := sha256.Sum256(x)
		return "sha256 " + hex.EncodeToString(sum[:6])
	}
	switch v.Kind() {
	case reflect.Pointer:
		return render(v.Elem())
	case reflect.Struct:
		out := make(map[string]any)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if zero := v.Field(i).IsZero(); !zero && f.IsExported() {
				out[strings.ToLower(f.Name[:1])+f.Name[1:]] = render(v.Field(i))
			}
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = render(v.Index(i))
		}
		return out
	}
	return v.Interface()
}

// renderReport turns a report into plain values: a condition is one line.
func renderReport(r *compile.Report, problems []compile.Problem) any {
	conditions := func(cs []metav1.Condition) []string {
		var out []string
		for _, c := range cs {
			out = append(out, fmt.Sprintf("%s=%s %s @%d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message))
		}
		return out
	}
	out := make(map[string]any)
	for _, x := range r.Classes {
		out["GatewayClass "+x.Name] = map[string]any{
			"conditions": conditions(x.Status.Conditions), "supportedFeatures": len(x.Status.SupportedFeatures),
		}
	}
	for _, x := range r.Gateways {
		var addresses []string
		for _, a := range x.Status.Addresses {
			addresses = append(addresses, string(*a.Type)+" "+a.Value)
		}
		listeners := make(map[string]any)
		for _, l := range x.Status.Listeners {
			kinds := []string{}
			for _, k := range l.SupportedKinds {
				kinds = append(kinds, string(*k.Group)+"/"+string(k.Kind))
			}
			listeners[string(l.Name)] = map[string]any{
				"conditions": conditions(l.Conditions), "attachedRoutes": l.AttachedRoutes, "supportedKinds": kinds,
			}
		}
		out["Gateway "+x.String()] = map[string]any{
			"conditions": conditions(x.Status.Conditions), "addresses": addresses, "listeners": listeners,
		}
	}
	for _, x := range r.Routes {
		var parents []any
		for _, p := range x.Parents {
			parents = append(parents, map[string]any{
				"parentRef": p.ParentRef, "controller": p.ControllerName, "conditions": conditions(p.Conditions),
			})
		}
		out[x.Kind+" "+x.String()] = parents
	}
	for _, x := range r.Policies {
		ancestors := make(map[string]any)
		for _, a := range x.Ancestors {
			name := string(*a.AncestorRef.Kind) + " " + string(a.AncestorRef.Name)
			if s := a.AncestorRef.SectionName; s != nil {
				name += " " + string(*s)
			}
			ancestors[name] = conditions(a.Conditions)
		}
		out[x.Kind+" "+x.String()] = ancestors
	}
	var list []string
	for _, p := range problems {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s:%d %s %s %s: %s", filepath.Base(p.File), p.Line, p.Severity, p.Object(), p.Field, p.Message)))
	}
	if list != nil {
		out["problems"] = list
	}
	return out
}
