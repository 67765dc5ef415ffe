package kube

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/controllers/compile"
)

// endpointSlices are known by their Service, addresses, conditions and ports.
func endpointSlices() kind {
	service := func(o *discoveryv1.EndpointSlice) string { return o.Labels[discoveryv1.LabelServiceName] }
	return &list[*discoveryv1.EndpointSlice]{
		names: about{kind: "EndpointSlice"},
		new:   func() *discoveryv1.EndpointSlice { return new(discoveryv1.EndpointSlice) },
		lighten: func(o *discoveryv1.EndpointSlice) {
			name := service(o)
			strip(o)
			o.Labels = map[string]string{discoveryv1.LabelServiceName: name}
			o.AddressType = word(o.AddressType)
			words(&o.Ports)
			for i, e := range o.Endpoints {
				o.Endpoints[i] = discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions}
			}
		},
		same: func(a, b *discoveryv1.EndpointSlice) bool {
			return service(a) == service(b) && a.AddressType == b.AddressType &&
				equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && equality.Semantic.DeepEqual(a.Ports, b.Ports)
		},
		put: func(in *compile.Input, l []*discoveryv1.EndpointSlice) { in.EndpointSlices = l },
	}
}
