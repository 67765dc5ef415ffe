package main

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/controllers/compile"
)

func TestControllerAddresses(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	for name, c := range map[string]struct {
		args []string
		want compile.Addresses
		node string
		err  string
	}{
		"the node's own": {
			args: []string{"--node-name", "n"},
			want: compile.Addresses{Bind: []netip.Addr{addr("0.0.0.0"), addr("::")}}, node: "n",
		},
		"told": {
			args: []string{"--node-name", "n", "--node-address", "192.0.2.1", "--bind-address", "0.0.0.0"},
			want: compile.Addresses{Bind: []netip.Addr{addr("0.0.0.0")}, Node: []netip.Addr{addr("192.0.2.1")}},
		},
		"a pool": {
			args: []string{"--node-name", "n", "--address-pool", "192.0.2.64/26"},
			want: compile.Addresses{Pool: []netip.Prefix{prefix("192.0.2.64/26")}},
		},
		"behind a Service": {
			args: []string{"--node-name", "n", "--address-service", "edge/headgate", "--bind-address", "0.0.0.0"},
			want: compile.Addresses{Bind: []netip.Addr{addr("0.0.0.0")}, Service: types.NamespacedName{Namespace: "edge", Name: "headgate"}},
		},
		"a Service without a namespace": {
			args: []string{"--address-service", "headgate"}, err: "NAMESPACE/NAME",
		},
		"the mode without a Service": {
			args: []string{"--address-mode", "service"}, err: "needs --address-service",
		},
		"a Service in another mode": {
			args: []string{"--address-mode", "node", "--address-service", "a/b"}, err: "goes with --address-mode service",
		},
		"a Service and a pool": {
			args: []string{"--address-service", "a/b", "--address-pool", "192.0.2.64/26"}, err: "--address-pool does not go with",
		},
		"of the spec": {args: []string{"--address-mode", "spec"}},
		"a pool without addresses": {
			args: []string{"--address-mode", "pool"}, err: "needs --address-pool",
		},
		"a wrong pool":    {args: []string{"--address-pool", "x"}, err: `--address-pool "x"`},
		"a wrong mode":    {args: []string{"--address-mode", "x"}, err: `--address-mode "x"`},
		"a wrong address": {args: []string{"--node-address", "x"}, err: `--node-address "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			var f controllerFlags
			if err := f.command().ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			o, err := f.compileOptions("https://127.0.0.1:6443")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one about %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
			samePrefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
			if diff := cmp.Diff(c.want, o.Addresses, same, samePrefix); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if f.nodeName != c.node {
				t.Errorf("the Node %q is followed, want %q", f.nodeName, c.node)
			}
		})
	}
}

// The feature of the Gateways' Services is claimed when they are made.
func TestControllerFeatures(t *testing.T) {
	for flag, want := range map[string]int{"--gateway-services=true": 1, "--gateway-services=false": 0} {
		var f controllerFlags
		if err := f.command().ParseFlags([]string{flag}); err != nil {
			t.Fatal(err)
		}
		o, err := f.compileOptions("")
		if err != nil || len(o.Features) != want {
			t.Errorf("%s: features %v, error %v", flag, o.Features, err)
		}
	}
}

func TestControllerElection(t *testing.T) {
	var f controllerFlags
	if err := f.command().ParseFlags([]string{"--leader-elect=false"}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.election(); err != nil || e.Name != "" {
		t.Errorf("election %+v, error %v; want none", e, err)
	}
	f = controllerFlags{}
	if err := f.command().ParseFlags([]string{"--leader-election-namespace", "ns"}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.election(); err != nil || e.Namespace != "ns" || e.Name != "headgate-leader" || e.Identity == "" {
		t.Errorf("election %+v, error %v", e, err)
	}
	f = controllerFlags{}
	if err := f.command().ParseFlags([]string{"--leader-election-namespace", "ns", "--leader-election-name", "second"}); err != nil {
		t.Fatal(err)
	}
	if e, err := f.election(); err != nil || e.Name != "second" {
		t.Errorf("election %+v, error %v", e, err)
	}
	f.leaseName = ""
	if _, err := f.election(); err == nil || !strings.Contains(err.Error(), "--leader-election-name") {
		t.Errorf("an election without a name: error %v", err)
	}
}

// The DataPlane object has the node's name where one process is on a node.
func TestDataPlaneName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host = strings.ToLower(host)
	for name, c := range map[string]struct {
		f    controllerFlags
		want string
		err  bool
	}{
		"on a node":          {controllerFlags{reportNode: "node-1", addressMode: "node"}, "node-1", false},
		"behind a Service":   {controllerFlags{reportNode: "node-1", addressMode: "service"}, host, false},
		"outside":            {controllerFlags{addressMode: "node"}, host, false},
		"another release":    {controllerFlags{reportNode: "node-1", addressMode: "node", controllerName: "example.com/two"}, "node-1-2807dc85", false},
		"the default":        {controllerFlags{reportNode: "node-1", addressMode: "node", controllerName: "headgate.dev/gateway-controller"}, "node-1", false},
		"named":              {controllerFlags{report: "edge-1", reportNode: "node-1"}, "edge-1", false},
		"off":                {controllerFlags{report: "off", reportNode: "node-1"}, "", false},
		"what no object has": {controllerFlags{report: "Edge_1"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.f.dataPlaneName()
			if got != c.want || (err != nil) != c.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
