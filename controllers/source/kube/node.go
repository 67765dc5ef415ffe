package kube

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/controllers/compile"
)

// nodes are known by their addresses, and by whether they are ready.
func nodes() kind {
	return &list[*corev1.Node]{
		names: about{kind: "Node"},
		new:   func() *corev1.Node { return new(corev1.Node) },
		lighten: func(o *corev1.Node) {
			strip(o)
			var ready []corev1.NodeCondition
			for _, c := range o.Status.Conditions {
				if c.Type == corev1.NodeReady {
					ready = append(ready, corev1.NodeCondition{Type: c.Type, Status: c.Status})
				}
			}
			o.Spec, o.Status = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: o.Status.Addresses, Conditions: ready}
		},
		same: func(a, b *corev1.Node) bool { return equality.Semantic.DeepEqual(a.Status, b.Status) },
		put:  func(in *compile.Input, l []*corev1.Node) { in.Nodes = l },
	}
}

// nodeNamed returns the Node with the name, or nil.
func nodeNamed(nodes []*corev1.Node, name string) *corev1.Node {
	if i := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name }); i >= 0 {
		return nodes[i]
	}
	return nil
}

// nodeAddresses are the addresses by which a Node is reached: the external ones
// of a family where it has any, else the internal ones.
func nodeAddresses(n *corev1.Node) []netip.Addr {
	if n == nil {
		return nil
	}
	var out []netip.Addr
	for _, is4 := range []bool{true, false} {
		for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
			before := len(out)
			for _, a := range n.Status.Addresses {
				ip, err := netip.ParseAddr(a.Address)
				if err == nil && a.Type == kind && ip.Unmap().Is4() == is4 {
					out = append(out, ip.Unmap())
				}
			}
			if len(out) > before {
				break
			}
		}
	}
	return out
}
