//go:build linux

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// class is the name of the GatewayClass in config/manager.
const class = "headgate"

// gatewayName is the name of the one Gateway.
const gatewayName = "edge"

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newGateway returns a Gateway with one listener, for routes of every namespace.
func newGateway(port int32) *gatewayv1.Gateway {
	all := gatewayv1.NamespacesFromAll
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: gatewayName},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: class,
			Listeners: []gatewayv1.Listener{{
				Name: "http", Port: port, Protocol: gatewayv1.HTTPProtocolType,
				AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
			}},
		},
	}
}

// attachedRoutes is how many routes the Gateway counts; -1 before it does.
func attachedRoutes(gw *gatewayv1.Gateway) int {
	if len(gw.Status.Listeners) == 0 {
		return -1
	}
	return int(gw.Status.Listeners[0].AttachedRoutes)
}

// hostname is the name by which a route is asked for.
func hostname(route string) string { return route + ".example.com" }

// newRoute returns a route of a hostname of its own to a Service. Its name goes
// to the backend, which answers it: so an answer tells which route it came by.
func newRoute(namespace, name, service string) *gatewayv1.HTTPRoute {
	edge := gatewayv1.Namespace(home)
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Namespace: &edge, Name: gatewayName}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(hostname(name))},
			Rules: []gatewayv1.HTTPRouteRule{{
				Filters:     []gatewayv1.HTTPRouteFilter{stamp(name)},
				BackendRefs: []gatewayv1.HTTPBackendRef{backendRef(service, 1)},
			}},
		},
	}
}

// stamp is a filter that has the backend answer a text.
func stamp(text string) gatewayv1.HTTPRouteFilter {
	return gatewayv1.HTTPRouteFilter{
		Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier,
		RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{
			Set: []gatewayv1.HTTPHeader{{Name: stampHeader, Value: text}},
		},
	}
}

func backendRef(service string, weight int32) gatewayv1.HTTPBackendRef {
	port := gatewayv1.PortNumber(servicePort)
	return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: &port},
		Weight:                 &weight,
	}}
}

const servicePort = 80

// newService returns a Service without a selector: its endpoints are ours to
// make.
func newService(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Ports:     []corev1.ServicePort{{Name: "http", Port: servicePort}},
		},
	}
}

// newSlice returns the endpoints of a Service.
func newSlice(namespace, service string, port int, addresses ...string) *discoveryv1.EndpointSlice {
	name, number := "http", int32(port)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service,
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
	}
	s.Endpoints = endpoints(addresses...)
	return s
}

func endpoints(addresses ...string) []discoveryv1.Endpoint {
	ready := true
	out := make([]discoveryv1.Endpoint, len(addresses))
	for i, a := range addresses {
		out[i] = discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	}
	return out
}

// idleAddress is an address for an endpoint that nobody sends a request to.
func idleAddress(n int) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+n/62500%64, n/250%250, 1+n%250)
}
