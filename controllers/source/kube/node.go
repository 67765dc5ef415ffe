package kube

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// node follows the one Node that this process runs on, for its addresses.
func node(name string) *named[*corev1.Node] {
	return &named[*corev1.Node]{
		kind: "Node",
		new:  func() *corev1.Node { return new(corev1.Node) },
		list: func() client.ObjectList { return new(corev1.NodeList) },
		strip: func(o *corev1.Node) {
			strip(o)
			o.Labels = nil
			o.Spec, o.Status = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: o.Status.Addresses}
		},
		of:  func(*gatewayv1.Gateway) []types.NamespacedName { return []types.NamespacedName{{Name: name}} },
		put: func(*compile.Input, []*corev1.Node) {},
	}
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
