package compile_test

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// cluster is a large input: n routes, each with its own Service and slice.
func cluster(n int) compile.Input {
	var in compile.Input
	in.Options.Addresses.Bind = []netip.Addr{netip.IPv4Unspecified()}
	in.Classes = []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}}}
	in.Gateways = []*gatewayv1.Gateway{{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "default"},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "c", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
	}}
	for i := range n {
		name := fmt.Sprintf("app-%05d", i)
		meta := metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: name}}
		in.HTTPRoutes = append(in.HTTPRoutes, benchRoute(name, "/"+name))
		in.Services = append(in.Services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		in.EndpointSlices = append(in.EndpointSlices, benchSlice(meta, fmt.Sprintf("10.%d.%d.1", i/200, i%200)))
	}
	return in
}

func benchSlice(meta metav1.ObjectMeta, ip string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Port: ptr[int32](8080)}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip}}},
	}
}

func benchRoute(name, path string) *gatewayv1.HTTPRoute {
	hr := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	hr.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
	hr.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")}
	hr.Spec.Rules = []gatewayv1.HTTPRouteRule{{
		Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}},
		BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: ptr[int32](80)}}}},
	}}
	return hr
}

// cpu reports the processor's time for an operation, which other processes on the
// machine don't change much.
func cpu(b *testing.B, f func(i int)) {
	used := func() int64 {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return r.Utime.Nano() + r.Stime.Nano()
	}
	b.ReportAllocs()
	start, n := used(), 0
	for b.Loop() {
		f(n)
		n++
	}
	b.ReportMetric(float64(used()-start)/float64(n), "cpu-ns/op")
}

// BenchmarkCompile compiles 5,000 routes from nothing.
func BenchmarkCompile(b *testing.B) {
	in := cluster(5000)
	cpu(b, func(int) { compile.Compile(in) })
}

// BenchmarkRouteChange changes one of 5,000 routes.
func BenchmarkRouteChange(b *testing.B) {
	in := cluster(5000)
	var c compile.Compiler
	c.Compile(in)
	cpu(b, func(i int) {
		in.HTTPRoutes = slices.Clone(in.HTTPRoutes)
		in.HTTPRoutes[2500] = benchRoute("app-02500", fmt.Sprint("/v", i))
		c.Compile(in)
	})
}

// BenchmarkEndpointChange changes one of 5,000 EndpointSlices.
func BenchmarkEndpointChange(b *testing.B) {
	in := cluster(5000)
	var c compile.Compiler
	c.Compile(in)
	cpu(b, func(i int) {
		in.EndpointSlices = slices.Clone(in.EndpointSlices)
		in.EndpointSlices[2500] = benchSlice(in.EndpointSlices[2500].ObjectMeta, fmt.Sprint("10.200.0.", i%250))
		c.Compile(in)
	})
}

// BenchmarkValidate and BenchmarkHash are the other costs of a turn in which one
// of 5,000 routes changed.
func BenchmarkValidate(b *testing.B) {
	one, other := twoSnapshots()
	var v ir.Validator
	cpu(b, func(int) {
		one, other = other, one
		if err := v.Validate(one); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	one, other := twoSnapshots()
	var h ir.Hasher
	cpu(b, func(int) {
		one, other = other, one
		h.Hash(one)
	})
}

// twoSnapshots differ in one of 5,000 routes.
func twoSnapshots() (one, other *ir.Snapshot) {
	in := cluster(5000)
	var c compile.Compiler
	one, _ = c.Compile(in)
	in.HTTPRoutes = slices.Clone(in.HTTPRoutes)
	in.HTTPRoutes[2500] = benchRoute("app-02500", "/other")
	other, _ = c.Compile(in)
	return one, other
}
