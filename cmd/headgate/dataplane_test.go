package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
)

// says is a configuration that says this of the process.
func says(p ir.Process) func(context.Context, *zap.Logger) ir.Process {
	return func(context.Context, *zap.Logger) ir.Process { return p }
}

// startLoops starts a data plane that a test's end stops.
func startLoops(t *testing.T, first ir.Process, args ...string) *process {
	t.Helper()
	var f dataPlaneFlags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(fs)
	if err := fs.Parse(append([]string{"--admin-address=", "--access-log=off", "--drain-period=0s", "--log-level=error"}, args...)); err != nil {
		t.Fatal(err)
	}
	p, err := f.start(t.Context(), says(first), func() error { return nil }, func(*dataplane.Server, *zap.Logger) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// The first configuration counts before the flags for what a process has from its
// start on. What another one wants, or the flags where it says nothing, is told.
func TestLoopsOfTheFirstConfiguration(t *testing.T) {
	workers := func(runs, asked string) []ir.Setting {
		return []ir.Setting{{Name: "workers", Runs: runs, Asked: asked}}
	}
	for name, c := range map[string]struct {
		first ir.Process
		args  []string
		loops int
		then  ir.Process
		want  []ir.Setting
	}{
		"flags":                    {ir.Process{}, []string{"--workers=2"}, 2, ir.Process{}, nil},
		"parameters before flags":  {ir.Process{Workers: 3}, []string{"--workers=2"}, 3, ir.Process{Workers: 3}, nil},
		"flags, then parameters":   {ir.Process{}, []string{"--workers=2"}, 2, ir.Process{Workers: 3}, workers("2", "3")},
		"parameters that went":     {ir.Process{Workers: 3}, []string{"--workers=2"}, 3, ir.Process{}, workers("3", "2")},
		"pinned by a flag":         {ir.Process{}, []string{"--workers=1", "--pin"}, 1, ir.Process{Pinning: ir.PinPerCPU}, nil},
		"not pinned by parameters": {ir.Process{Pinning: ir.PinOff}, []string{"--workers=1", "--pin"}, 1, ir.Process{}, []ir.Setting{{Name: "pinning", Runs: "Off", Asked: "PerCPU"}}},
		"pinned by parameters":     {ir.Process{Pinning: ir.PinPerCPU}, []string{"--workers=1"}, 1, ir.Process{Pinning: ir.PinOff}, []ir.Setting{{Name: "pinning", Runs: "PerCPU", Asked: "Off"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startLoops(t, c.first, c.args...)
			if n := len(p.server.Loops()); n != c.loops {
				t.Errorf("%d loops, want %d", n, c.loops)
			}
			res := p.server.Apply(&ir.Snapshot{Process: c.then})
			if !res.OK() {
				t.Errorf("it is a failure: %+v", res)
			}
			if diff := cmp.Diff(c.want, res.Restart); diff != "" {
				t.Errorf("to be restarted for (-want +got):\n%s", diff)
			}
		})
	}
}

// classParameters is a GatewayClass with parameters, up to what these say.
const classParameters = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec:
  controllerName: headgate.dev/gateway-controller
  parametersRef: {group: headgate.dev, kind: GatewayParameters, namespace: infra, name: all}
---
apiVersion: headgate.dev/v1alpha1
kind: GatewayParameters
metadata: {name: all, namespace: infra}
spec: `

// A directory says what the process is to be like before it is served.
func TestProcessOfDirectory(t *testing.T) {
	dir := t.TempDir()
	const text = classParameters + `{workers: 3, pinning: PerCPU, pressure: {maxConnections: 100, memoryLimit: 1Gi}}
`
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := ir.Process{Workers: 3, Pinning: ir.PinPerCPU, MaxConnections: 100, MemoryLimit: 1 << 30}
	if got := processOf(src)(t.Context(), zap.NewNop()); got != want {
		t.Errorf("it says %+v, want %+v", got, want)
	}
}

// check tells of parameters that are not valid, and of those that say in vain what a
// process has once.
func TestCheckParameters(t *testing.T) {
	const frame = classParameters + `{workers: 2, pressure: {maxConnections: 100}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: headgate
  infrastructure: {parametersRef: {group: headgate.dev, kind: GatewayParameters, name: own}}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
---
apiVersion: headgate.dev/v1alpha1
kind: GatewayParameters
metadata: {name: own}
spec: `
	for spec, want := range map[string][]string{
		"{accessLog: {mode: Errors}}": {"GatewayClass headgate: Accepted=True SupportedVersion=True\n", "0 errors, 0 warnings\n"},
		"{workers: 4}": {
			"a.yaml:18: warning: Gateway default/edge: spec.infrastructure.parametersRef: GatewayParameters default/own: spec.workers: this counts in the parameters of a GatewayClass only",
			"0 errors, 1 warning\n",
		},
		"{client: {limits: {headerBytes: 10}}}": {"spec.client.limits.headerBytes: Invalid value: 10: must be between 1024 and 1048576"},
		"{pressure: {memoryLimit: 1Mi}}":        {`spec.pressure.memoryLimit: Invalid value: "1Mi": must be between 16Mi and 1024Gi`},
	} {
		out, err := checkDir(t, frame+spec+"\n", checkFlags{})
		if err != nil && !errors.Is(err, errProblems) {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s:\n%swant %q", spec, out, w)
			}
		}
	}
}
