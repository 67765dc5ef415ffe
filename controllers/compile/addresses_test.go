package compile_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// TestPool checks who gets which address of a pool.
func TestPool(t *testing.T) {
	type gateway struct {
		name, created string
		status, spec  []string
	}
	for _, tt := range []struct {
		name     string
		pool     []string
		had      map[string]string
		gateways []gateway
		want     map[string]string
	}{
		{"in order of age, then of name", []string{"10.9.0.0/29"}, nil,
			[]gateway{{name: "a", created: "2025-01-02T00:00:00Z"}, {name: "c"}, {name: "b"}},
			map[string]string{"b": "10.9.0.1", "c": "10.9.0.2", "a": "10.9.0.3"}},
		{"they keep what they had", []string{"10.9.0.0/29"}, map[string]string{"b": "10.9.0.1", "c": "10.9.0.5"},
			[]gateway{{name: "a"}, {name: "b"}, {name: "c"}},
			map[string]string{"a": "10.9.0.2", "b": "10.9.0.1", "c": "10.9.0.5"}},
		{"they keep what their status says", []string{"10.9.0.0/29"}, map[string]string{"a": "10.9.0.6"},
			[]gateway{{name: "a", status: []string{"10.9.0.1"}}, {name: "b", status: []string{"192.0.2.1", "x", "10.9.0.4"}}, {name: "c", status: []string{"10.9.0.6"}}},
			map[string]string{"a": "10.9.0.6", "b": "10.9.0.4", "c": "10.9.0.1"}},
		{"what left the pool is given back", []string{"10.9.0.0/30"}, map[string]string{"a": "10.8.0.1"},
			[]gateway{{name: "a"}}, map[string]string{"a": "10.9.0.1"}},
		{"an address that a Gateway names is taken", []string{"10.9.0.0/30"}, map[string]string{"a": "10.9.0.1"},
			[]gateway{{name: "a"}, {name: "b", spec: []string{"10.9.0.1"}}}, map[string]string{"a": "10.9.0.2"}},
		{"a Gateway that names one and wants one", []string{"10.9.0.0/30"}, nil,
			[]gateway{{name: "a", spec: []string{"10.9.0.1", ""}}}, map[string]string{"a": "10.9.0.2"}},
		{"several ranges", []string{"10.9.0.7/32", "10.9.1.0/31", "2001:db8::/127"}, nil,
			[]gateway{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}, {name: "f"}},
			map[string]string{"a": "10.9.0.7", "b": "10.9.1.0", "c": "10.9.1.1", "d": "2001:db8::", "e": "2001:db8::1"}},
		{"network and broadcast are left out", []string{"10.9.0.9/30"}, nil,
			[]gateway{{name: "a"}, {name: "b"}, {name: "c"}}, map[string]string{"a": "10.9.0.9", "b": "10.9.0.10"}},
		{"the end of all addresses", []string{"255.255.255.254/31"}, nil,
			[]gateway{{name: "a"}, {name: "b"}, {name: "c"}}, map[string]string{"a": "255.255.255.254", "b": "255.255.255.255"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := compile.Input{Assigned: make(map[types.NamespacedName]netip.Addr)}
			for _, p := range tt.pool {
				in.Options.Addresses.Pool = append(in.Options.Addresses.Pool, netip.MustParsePrefix(p))
			}
			for name, addr := range tt.had {
				in.Assigned[types.NamespacedName{Namespace: "default", Name: name}] = netip.MustParseAddr(addr)
			}
			in.Classes = []*gatewayv1.GatewayClass{
				{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}},
				{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/x"}},
			}
			in.Gateways = []*gatewayv1.Gateway{{ // another controller's, which takes nothing
				ObjectMeta: metav1.ObjectMeta{Name: "0", Namespace: "default"}, Spec: gatewayv1.GatewaySpec{GatewayClassName: "other"},
			}}
			for _, g := range tt.gateways {
				gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: "default"}}
				gw.Spec.GatewayClassName = "c"
				gw.Spec.Listeners = []gatewayv1.Listener{{Name: "l", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
				if g.created != "" {
					if err := gw.CreationTimestamp.UnmarshalQueryParameter(g.created); err != nil {
						t.Fatal(err)
					}
				}
				for _, a := range g.status {
					gw.Status.Addresses = append(gw.Status.Addresses, gatewayv1.GatewayStatusAddress{Value: a})
				}
				for _, a := range g.spec {
					gw.Spec.Addresses = append(gw.Spec.Addresses, gatewayv1.GatewaySpecAddress{Value: a})
				}
				in.Gateways = append(in.Gateways, gw)
			}
			_, report := compile.Compile(in)
			got := make(map[string]string)
			for k, a := range report.Assigned {
				got[k.Name] = a.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("assigned (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReportedAddresses checks what a Gateway's status says of what is bound.
func TestReportedAddresses(t *testing.T) {
	addrs := func(list ...string) (out []netip.Addr) {
		for _, s := range list {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	for _, tt := range []struct {
		name             string
		bind, node, spec []string
		want             []string
	}{
		{"those that are bound", []string{"10.0.0.1", "10.0.0.1", "::ffff:10.0.0.2"}, []string{"192.0.2.1"}, nil, []string{"10.0.0.1", "10.0.0.2"}},
		{"the node's of the family", []string{"0.0.0.0"}, []string{"192.0.2.1", "2001:db8::1", "192.0.2.1"}, nil, []string{"192.0.2.1"}},
		{"the node's of both families", []string{"0.0.0.0", "::"}, []string{"192.0.2.1", "2001:db8::1"}, nil, []string{"192.0.2.1", "2001:db8::1"}},
		{"named twice", []string{"0.0.0.0"}, nil, []string{"10.0.0.1", "::ffff:10.0.0.1"}, []string{"10.0.0.1"}},
		{"no more than the API takes", nil, nil, []string{
			"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9",
			"10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.15", "10.0.0.16", "10.0.0.17",
		}, []string{
			"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9",
			"10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.15", "10.0.0.16",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := cluster(1)
			in.Options.Addresses = compile.Addresses{Bind: addrs(tt.bind...), Node: addrs(tt.node...)}
			for _, s := range tt.spec {
				in.Gateways[0].Spec.Addresses = append(in.Gateways[0].Spec.Addresses, gatewayv1.GatewaySpecAddress{Value: s})
			}
			_, report := compile.Compile(in)
			var got []string
			for _, a := range report.Gateways[0].Status.Addresses {
				got = append(got, a.Value)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
