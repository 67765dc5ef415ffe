package compile_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// twoListeners is the report of generation 3 of a Gateway with the ports 80 and
// 81, as the node "one" serves it.
func twoListeners(t *testing.T, res ir.ApplyResult) *compile.Report {
	t.Helper()
	in := compile.Input{
		Classes: []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}}},
		Gateways: []*gatewayv1.Gateway{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gw", Generation: 3},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "c", Listeners: []gatewayv1.Listener{
				{Name: "a", Port: 80, Protocol: gatewayv1.HTTPProtocolType}, {Name: "b", Port: 81, Protocol: gatewayv1.HTTPProtocolType},
			}},
		}},
		Options: compile.Options{Addresses: compile.Addresses{
			Bind: []netip.Addr{netip.MustParseAddr("0.0.0.0")}, Node: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		}},
	}
	_, report := compile.Compile(in)
	return report.Applied(res)
}

// plane is a data plane on a Node of the same name, which has applied a generation
// of the Gateway.
func plane(name string, generation int64, faults ...v1alpha1.ListenerOnNode) *v1alpha1.DataPlane {
	p := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.ControllerName, p.Status.NodeName = compile.ControllerName, name
	if generation > 0 {
		p.Status.Gateways = []v1alpha1.GatewayOnNode{{Namespace: "default", Name: "gw", Generation: generation, Listeners: faults}}
	}
	return p
}

func k8sNode(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func TestAcross(t *testing.T) {
	taken := ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:81": fmt.Errorf("bind: %w", syscall.EADDRINUSE)}}
	noAddress := ir.ApplyResult{Sockets: map[string]error{
		"0.0.0.0:80": fmt.Errorf("bind: %w", syscall.EADDRNOTAVAIL), "0.0.0.0:81": fmt.Errorf("bind: %w", syscall.EADDRNOTAVAIL),
	}}
	busy := v1alpha1.ListenerOnNode{Name: "b", Reason: "PortUnavailable", Message: "the port is taken"}
	partly := v1alpha1.ListenerOnNode{Name: "b", Served: true, Reason: "PortUnavailable", Message: "the port is taken on ::"}
	stranger := plane("two", 1)
	stranger.Status.ControllerName = "example.com/other"
	detached := plane("laptop", 1)
	detached.Status.NodeName = ""
	ready := []*corev1.Node{k8sNode("one", "True"), k8sNode("two", "True"), k8sNode("three", "True"), k8sNode("down", "Unknown")}
	const good = "Accepted=True/Accepted Programmed=True/Programmed | a Accepted=True/Accepted Programmed=True/Programmed | b Accepted=True/Accepted Programmed=True/Programmed"
	for name, c := range map[string]struct {
		local  ir.ApplyResult
		planes []*v1alpha1.DataPlane
		want   string
		says   string // part of a message of listener b, or of the Gateway
		behind []string
	}{
		"alone":               {planes: []*v1alpha1.DataPlane{plane("one", 1)}, want: good},
		"all serve it":        {planes: []*v1alpha1.DataPlane{plane("one", 3), plane("two", 3), plane("three", 4)}, want: good},
		"another controller":  {planes: []*v1alpha1.DataPlane{stranger}, want: good},
		"a node that is down": {planes: []*v1alpha1.DataPlane{plane("down", 1)}, want: good},
		"a node that is gone": {planes: []*v1alpha1.DataPlane{plane("gone", 1)}, want: good},
		"one is behind": {
			planes: []*v1alpha1.DataPlane{plane("two", 2), plane("three", 3)}, behind: []string{"two"}, says: "two still serves generation 2. See kubectl describe dataplane two",
			want: "Accepted=True/Accepted Programmed=False/Pending | a Accepted=True/Accepted Programmed=False/Pending | b Accepted=True/Accepted Programmed=False/Pending",
		},
		"outside of the cluster": {
			planes: []*v1alpha1.DataPlane{detached}, behind: []string{"laptop"}, says: "laptop still serves generation 1",
			want: "Accepted=True/Accepted Programmed=False/Pending | a Accepted=True/Accepted Programmed=False/Pending | b Accepted=True/Accepted Programmed=False/Pending",
		},
		"one does not know it": {
			planes: []*v1alpha1.DataPlane{plane("two", 0)}, behind: []string{"two"}, says: "two does not serve the Gateway yet",
			want: "Accepted=True/Accepted Programmed=False/Pending | a Accepted=True/Accepted Programmed=False/Pending | b Accepted=True/Accepted Programmed=False/Pending",
		},
		"a port is taken there": {
			planes: []*v1alpha1.DataPlane{plane("two", 3, busy), plane("three", 3)}, says: "On two: the port is taken",
			want: "Accepted=True/ListenersNotValid Programmed=True/Programmed | a Accepted=True/Accepted Programmed=True/Programmed | b Accepted=True/Accepted Programmed=False/PortUnavailable",
		},
		"a port is taken here": {
			local: taken, planes: []*v1alpha1.DataPlane{plane("two", 3)}, says: "On one: 0.0.0.0:81 could not be opened",
			want: "Accepted=True/ListenersNotValid Programmed=True/Programmed | a Accepted=True/Accepted Programmed=True/Programmed | b Accepted=True/Accepted Programmed=False/PortUnavailable",
		},
		"a port is taken everywhere": {
			local: taken, planes: []*v1alpha1.DataPlane{plane("two", 3, busy)}, says: ". On two: the port is taken",
			want: "Accepted=True/ListenersNotValid Programmed=True/Programmed | a Accepted=True/Accepted Programmed=True/Programmed | b Accepted=False/PortUnavailable Programmed=False/PortUnavailable",
		},
		"a port is taken in part": {
			local: taken, planes: []*v1alpha1.DataPlane{plane("two", 3, partly)}, says: "On two: the port is taken on ::",
			want: "Accepted=True/ListenersNotValid Programmed=True/Programmed | a Accepted=True/Accepted Programmed=True/Programmed | b Accepted=True/Accepted Programmed=False/PortUnavailable",
		},
		"the address is another node's": {local: noAddress, planes: []*v1alpha1.DataPlane{plane("two", 3)}, want: good},
		"the address is nobody's": {
			local: noAddress, says: "On one: 0.0.0.0:81 could not be opened",
			planes: []*v1alpha1.DataPlane{plane("two", 3,
				v1alpha1.ListenerOnNode{Name: "a", Reason: compile.ReasonNoAddress, Message: "no address"},
				v1alpha1.ListenerOnNode{Name: "b", Reason: compile.ReasonNoAddress, Message: "no address"})},
			want: "Accepted=True/Accepted Programmed=False/AddressNotUsable | a Accepted=True/Accepted Programmed=False/Pending | b Accepted=True/Accepted Programmed=False/Pending",
		},
		"nothing was taken here": {
			local: ir.ApplyResult{Err: errors.New("no")}, planes: []*v1alpha1.DataPlane{plane("two", 3)}, says: "On one: The data plane did not take the configuration",
			want: "Accepted=True/ListenersNotValid Programmed=True/Programmed | a Accepted=True/Accepted Programmed=False/Pending | b Accepted=True/Accepted Programmed=False/Pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := twoListeners(t, c.local)
			before := local.Gateways[0].Status.DeepCopy()
			g := local.Across("one", compile.ControllerName, c.planes, ready).Gateways[0]
			short := func(cs []metav1.Condition) string {
				var parts []string
				for _, c := range cs {
					if c.Type == "Accepted" || c.Type == "Programmed" {
						parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
					}
				}
				return strings.Join(parts, " ")
			}
			got := short(g.Status.Conditions)
			messages := fmt.Sprint(g.Status.Conditions)
			for _, l := range g.Status.Listeners {
				got += " | " + string(l.Name) + " " + short(l.Conditions)
			}
			messages += fmt.Sprint(g.Status.Listeners[1].Conditions)
			if got != c.want {
				t.Errorf("it says\n%s, want\n%s", got, c.want)
			}
			if !strings.Contains(messages, c.says) {
				t.Errorf("%s\nshould say %q", messages, c.says)
			}
			if diff := cmp.Diff(c.behind, g.Behind()); diff != "" {
				t.Errorf("behind (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, &local.Gateways[0].Status); diff != "" {
				t.Errorf("the local report was changed:\n%s", diff)
			}
		})
	}
}

// A port that is taken on each of very many nodes, and a generation that none of
// them has, are told of some of them: a status of megabytes is refused.
func TestAcrossMany(t *testing.T) {
	var nodes []*corev1.Node
	var planes []*v1alpha1.DataPlane
	for i := range 200 {
		name := fmt.Sprintf("node-%03d", i)
		nodes = append(nodes, k8sNode(name, "True"))
		planes = append(planes, plane(name, 3, v1alpha1.ListenerOnNode{Name: "b", Reason: "PortUnavailable", Message: strings.Repeat("taken ", 50)}))
	}
	check := func(what, message, has, ends string) {
		t.Helper()
		if len(message) > 4096 || !strings.Contains(message, has) || !strings.HasSuffix(message, ends) {
			t.Errorf("%s: %d bytes: %s", what, len(message), message)
		}
	}
	report := twoListeners(t, ir.ApplyResult{})
	g := report.Across("one", compile.ControllerName, planes, nodes).Gateways[0]
	for _, c := range g.Status.Listeners[1].Conditions {
		if c.Type == "Programmed" {
			check("taken", c.Message, "On node-007: taken", "And 192 more")
		}
	}
	for _, p := range planes {
		p.Status.Gateways[0].Generation = 2
	}
	g = report.Across("one", compile.ControllerName, planes, nodes).Gateways[0]
	check("behind", g.Status.Conditions[1].Message, "; node-007 still serves generation 2; and 192 more", "dataplane node-000 node-001 node-002 node-003 node-004 node-005 node-006 node-007")
	if n := len(g.Behind()); n != 200 {
		t.Errorf("%d are behind", n)
	}
}

// A DataPlane has place for so many Gateways. Of one that would come after them
// it says nothing, and not that it is not served.
func TestAcrossFull(t *testing.T) {
	for namespace, behind := range map[string]int{"a": 0, "z": 1} { // before and after "default"
		p := plane("two", 0)
		for i := range v1alpha1.MaxGatewaysOnNode {
			p.Status.Gateways = append(p.Status.Gateways, v1alpha1.GatewayOnNode{Namespace: namespace, Name: fmt.Sprintf("gw-%04d", i)})
		}
		g := twoListeners(t, ir.ApplyResult{}).Across("one", compile.ControllerName, []*v1alpha1.DataPlane{p}, []*corev1.Node{k8sNode("two", "True")}).Gateways[0]
		if len(g.Behind()) != behind {
			t.Errorf("full of those of namespace %s: %v are behind", namespace, g.Behind())
		}
	}
}

// What one node says of its faults is what another one reads.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		res  ir.ApplyResult
		want []compile.ListenerFault
	}{
		"none": {},
		"a port": {
			ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:81": fmt.Errorf("bind: %w", syscall.EADDRINUSE)}},
			[]compile.ListenerFault{{Name: "b", Reason: "PortUnavailable"}},
		},
		"an address": {
			ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:81": fmt.Errorf("bind: %w", syscall.EADDRNOTAVAIL)}},
			[]compile.ListenerFault{{Name: "b", Reason: compile.ReasonNoAddress}},
		},
		"everything": {
			ir.ApplyResult{Err: errors.New("no")},
			[]compile.ListenerFault{{Name: "a", Reason: "Pending"}, {Name: "b", Reason: "Pending"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := twoListeners(t, c.res).Gateways[0].Faults()
			for i := range got {
				if got[i].Message == "" {
					t.Errorf("%s has no message", got[i].Name)
				}
				got[i].Message = ""
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
