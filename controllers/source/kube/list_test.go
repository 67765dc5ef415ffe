package kube

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// informer is one that a test tells what to say.
type informer struct {
	cache.Informer
	handler toolscache.ResourceEventHandler
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return synced{}, nil
}

type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// follow has a kind follow an informer, and returns it and the count of changes.
func follow(t *testing.T, k kind) (*informer, *int) {
	t.Helper()
	i, n := new(informer), new(int)
	done, err := k.follow(context.Background(), i, bell{func() { *n++ }, func() { *n += 1000 }})
	if err != nil || !done() {
		t.Fatal("not followed", err)
	}
	return i, n
}

func service(name, version string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", ResourceVersion: version}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p})
	}
	return s
}

func input(k kind) (names []string, in compile.Input) {
	k.fill(&in)
	for _, s := range in.Services {
		names = append(names, s.Name)
	}
	return names, in
}

func TestList(t *testing.T) {
	k := services()
	i, n := follow(t, k)
	for _, name := range []string{"c", "a", "b"} {
		i.handler.OnAdd(service(name, "1", 80), true)
	}
	names, before := input(k)
	if !slices.Equal(names, []string{"a", "b", "c"}) || *n != 3 {
		t.Fatalf("have %v after %d changes", names, *n)
	}
	// What is not read is no change, and the old object stays.
	touched := service("b", "2", 80)
	touched.Labels = map[string]string{"touched": "yes"}
	i.handler.OnUpdate(before.Services[1], touched)
	if _, in := input(k); *n != 3 || in.Services[1] != before.Services[1] {
		t.Errorf("a label changed, and %d changes were told", *n-3)
	}
	i.handler.OnUpdate(before.Services[1], service("b", "3", 81))
	i.handler.OnDelete(service("a", "1"))
	i.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "ns/c", Obj: service("c", "1")})
	i.handler.OnDelete(service("never", "1"))
	names, now := input(k)
	if !slices.Equal(names, []string{"b"}) || now.Services[0].Spec.Ports[0].Port != 81 || *n != 6 {
		t.Errorf("have %v after %d changes", names, *n)
	}
	if len(before.Services) != 3 || before.Services[1].Spec.Ports[0].Port != 80 {
		t.Error("an input that was given out has changed")
	}
	k.forget()
	if names, _ := input(k); len(names) != 0 {
		t.Errorf("forgotten, but has %v", names)
	}
}

// A write of status is no hurry.
func TestListStatus(t *testing.T) {
	k := httpRoutes()
	i, n := follow(t, k)
	route := func(version string, generation int64) *gatewayv1.HTTPRoute {
		return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "uid", ResourceVersion: version, Generation: generation}}
	}
	i.handler.OnAdd(route("1", 1), true)
	status := route("2", 1)
	i.handler.OnUpdate(nil, status)
	var in compile.Input
	if k.fill(&in); *n != 1001 || in.HTTPRoutes[0] != status {
		t.Errorf("told %d, want 1001: one now, one soon", *n)
	}
	i.handler.OnUpdate(nil, route("3", 2))
	if *n != 1002 {
		t.Errorf("told %d, want 1002", *n)
	}
}

// Of Services of type LoadBalancer, and of no others, the addresses are read.
func TestListBalancer(t *testing.T) {
	k := services()
	i, n := follow(t, k)
	for _, name := range []string{"edge", "other"} {
		for version, given := range []*corev1.Service{service(name, "1", 80), service(name, "2", 80)} {
			if name == "edge" {
				given.Spec.Type = corev1.ServiceTypeLoadBalancer
			}
			if version == 1 {
				given.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
			}
			k.strip(given)
			i.handler.OnUpdate(nil, given)
		}
	}
	_, in := input(k)
	if len(in.Services[0].Status.LoadBalancer.Ingress) != 1 || len(in.Services[1].Status.LoadBalancer.Ingress) != 0 || *n != 3 {
		t.Errorf("after %d changes, want 3: %+v", *n, in.Services)
	}
}

// An object of the same name and content is another one all the same.
func TestListRecreated(t *testing.T) {
	k := services()
	i, n := follow(t, k)
	i.handler.OnAdd(service("a", "1", 80), true)
	other := service("a", "2", 80)
	other.UID = "other"
	i.handler.OnUpdate(nil, other)
	if _, in := input(k); *n != 2 || in.Services[0] != other {
		t.Error("the new object is not taken")
	}
}

// What is kept of each kind is what is read.
func TestStrip(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "n", Labels: map[string]string{"l": "v", discoveryv1.LabelServiceName: "s"},
		Annotations:   map[string]string{"a": "v", "gateway.networking.k8s.io/bundle-version": "v1.6.3"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	node := "node"
	objects := []metav1.Object{
		&gatewayv1.Gateway{ObjectMeta: meta}, &gatewayv1.HTTPRoute{ObjectMeta: meta}, &gatewayv1.GatewayClass{ObjectMeta: meta},
		&gatewayv1.ReferenceGrant{ObjectMeta: meta}, &corev1.Namespace{ObjectMeta: meta},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"a": "b"}}},
		&discoveryv1.EndpointSlice{ObjectMeta: meta, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, NodeName: &node}}},
		&v1alpha1.BackendPolicy{ObjectMeta: meta}, &v1alpha1.DataPlane{ObjectMeta: meta},
		&corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}, {Type: corev1.NodeMemoryPressure},
		}}},
	}
	for _, o := range objects {
		for _, k := range kinds(true) {
			k.strip(o)
		}
		if len(o.GetManagedFields()) > 0 || len(o.GetAnnotations()) > 0 {
			t.Errorf("%T keeps %v %v", o, o.GetManagedFields(), o.GetAnnotations())
		}
	}
	if s := objects[5].(*corev1.Service); s.Labels != nil || s.Spec.Selector != nil {
		t.Errorf("a Service keeps %+v", s)
	}
	if s := objects[6].(*discoveryv1.EndpointSlice); s.Endpoints[0].NodeName != nil || s.Labels[discoveryv1.LabelServiceName] != "s" || len(s.Labels) != 1 {
		t.Errorf("an EndpointSlice keeps %+v", s)
	}
	if n := objects[9].(*corev1.Node); n.Spec.PodCIDR != "" || len(n.Status.Conditions) != 1 || n.Status.Conditions[0].Reason != "" {
		t.Errorf("a Node keeps %+v", n)
	}
	if ns := objects[4].(*corev1.Namespace); ns.Labels["l"] != "v" {
		t.Error("a Namespace loses its labels")
	}
	for _, i := range []int{0, 1, 2, 3, 7, 8, 9} {
		if o := objects[i]; len(o.GetLabels()) > 0 {
			t.Errorf("%T keeps labels %v", o, o.GetLabels())
		}
	}
	ours := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{managedBy: manager}, Annotations: map[string]string{"a": "v"}}}
	services().strip(ours)
	if ours.Annotations["a"] != "v" {
		t.Error("a Service of our own loses its annotations")
	}
	crd := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	stripCRD(crd)
	if len(crd.Annotations) != 1 || len(crd.ManagedFields) > 0 {
		t.Errorf("a CRD keeps %+v", crd)
	}
}

func TestBundle(t *testing.T) {
	c := &crds{versions: map[string]string{
		"gateways.gateway.networking.k8s.io": "v1.6.3", "httproutes.gateway.networking.k8s.io": "v1.6.3",
		"grpcroutes.gateway.networking.k8s.io": "", "other.example.com": "v9",
	}}
	if got := c.bundle(); !slices.Equal(got, []string{"", "v1.6.3"}) {
		t.Errorf("versions %q", got)
	}
	if c.has("missing.example.com") || !c.has("other.example.com") {
		t.Error("has is wrong")
	}
}

func TestNodeAddresses(t *testing.T) {
	address := func(kind corev1.NodeAddressType, a string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: kind, Address: a}
	}
	for name, c := range map[string]struct {
		have []corev1.NodeAddress
		want []string
	}{
		"internal":              {[]corev1.NodeAddress{address("InternalIP", "10.0.0.1"), address("Hostname", "n")}, []string{"10.0.0.1"}},
		"external comes first":  {[]corev1.NodeAddress{address("InternalIP", "10.0.0.1"), address("ExternalIP", "192.0.2.1")}, []string{"192.0.2.1"}},
		"each family by itself": {[]corev1.NodeAddress{address("InternalIP", "2001:db8::1"), address("InternalIP", "10.0.0.1"), address("ExternalIP", "192.0.2.1")}, []string{"192.0.2.1", "2001:db8::1"}},
		"garbage":               {[]corev1.NodeAddress{address("InternalIP", "nonsense")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var want []netip.Addr
			for _, w := range c.want {
				want = append(want, netip.MustParseAddr(w))
			}
			if got := nodeAddresses(&corev1.Node{Status: corev1.NodeStatus{Addresses: c.have}}); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	if nodeAddresses(nil) != nil {
		t.Error("no Node has addresses")
	}
}
