package file

import (
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// FuzzYAML reads a file and compiles what is in it: nothing panics, every snapshot
// keeps its promises, every problem has a place, and a second reading says the
// same.
func FuzzYAML(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	f.Add("a: &a [*a]\n")
	f.Add("a: &a {b: &b [*a, *b]}\n<<: *a\n")
	f.Add("apiVersion: v1\nkind: List\nitems: [null, {}, [], 1]\n")
	f.Add("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: !!binary x, b: 0x1}\n")
	f.Add("---\n...\n--- !!map {? [a]: b}\n")
	const frame = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: headgate, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
`
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		for _, unchecked := range []bool{false, true} {
			for _, text := range []string{text, frame + text} {
				try(t, text, unchecked)
			}
		}
	})
}

func try(t *testing.T, text string, unchecked bool) {
	s := &Source{opts: Options{Unchecked: unchecked}, files: make(map[string]*file), objects: make(map[objectKey]*known)}
	s.opts.Compile.Addresses.Bind = []netip.Addr{netip.IPv4Unspecified()}
	s.opts.Compile.TrustEndpoints = true
	var problems []compile.Problem
	input := func() compile.Input {
		f, ps := s.read("x.yaml", text)
		s.files["x.yaml"] = f
		in, doubles := s.collect()
		problems = append(append(ps, doubles...), lint(&in)...)
		return in
	}
	in := input()
	var c compile.Compiler
	snap, report := c.Compile(in)
	if err := snap.Validate(); err != nil {
		t.Fatalf("the snapshot is invalid: %v", err)
	}
	failed := make(map[string]error)
	for _, k := range snap.Sockets {
		failed[k.Name] = syscall.EADDRINUSE
	}
	for _, r := range []ir.ApplyResult{{Sockets: failed}, {Err: errors.New("x")}} {
		problems = append(problems, report.Applied(r).Problems...)
	}
	for i := range problems {
		s.Locate(&problems[i])
		if p := problems[i]; p.Line < 1 || p.File != "x.yaml" || p.Message == "" {
			t.Fatalf("a problem without a place: %+v", p)
		}
	}
	again := input()
	if next, _ := c.Compile(again); next != snap {
		t.Fatal("the same text makes another snapshot")
	}
	if fresh, _ := compile.Compile(again); !reflect.DeepEqual(fresh, snap) || fresh.Hash() != snap.Hash() {
		t.Fatal("a compiler that starts afresh makes another snapshot")
	}
}
