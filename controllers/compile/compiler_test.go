package compile_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// world is a set of objects that edits change. Every change makes a new object.
type world struct {
	r       *rand.Rand
	serial  int
	pairs   [][2][]byte
	in      compile.Input
	options []compile.Options
}

var spaces = []string{"a", "a-b", "b", "default"}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 1))}
	for i := range 3 {
		chain, key := keyPair(t, fmt.Sprint("pair", i), []string{"www.example.com", "*.example.com"}, bigInt(int64(i+1)))
		w.pairs = append(w.pairs, [2][]byte{chain, key})
	}
	addr := netip.MustParseAddr
	w.options = []compile.Options{
		{Addresses: compile.Addresses{Bind: []netip.Addr{addr("0.0.0.0")}, Node: []netip.Addr{addr("192.0.2.1")}}},
		{Addresses: compile.Addresses{Pool: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/29")}}, TrustEndpoints: true},
		{BundleVersions: []string{"v1.4.0"}},
		{Addresses: compile.Addresses{
			Bind:    []netip.Addr{addr("0.0.0.0")},
			Service: types.NamespacedName{Namespace: "default", Name: "svc0"},
		}},
	}
	w.in.Options = w.options[0]
	for range 40 {
		w.edit()
	}
	return w
}

func pick[T any](w *world, list ...T) T { return list[w.r.IntN(len(list))] }

func ptr[T any](v T) *T { return &v }

// meta makes the metadata of one of few names, so that edits hit each other.
func (w *world) meta(kind string, n int, namespaced bool) metav1.ObjectMeta {
	w.serial++
	m := metav1.ObjectMeta{
		Name: fmt.Sprint(kind, w.r.IntN(n)), UID: types.UID(fmt.Sprint("uid", w.serial)),
		ResourceVersion: fmt.Sprint(w.serial), Generation: int64(w.serial),
	}
	if namespaced {
		m.Namespace = pick(w, spaces...)
	}
	if w.r.IntN(3) == 0 {
		m.CreationTimestamp = metav1.NewTime(time.Unix(int64(w.r.IntN(5)), 0))
	}
	return m
}

// put replaces or inserts an object, or takes it out.
func put[T interface {
	metav1.Object
	comparable
}](w *world, list []T, o T) []T {
	list = slices.DeleteFunc(slices.Clone(list), func(x T) bool {
		return x.GetName() == o.GetName() && x.GetNamespace() == o.GetNamespace()
	})
	if w.r.IntN(5) > 0 {
		list = append(list, o)
	}
	w.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if w.r.IntN(2) == 0 {
		slices.SortFunc(list, func(a, b T) int {
			switch {
			case a.GetNamespace()+"/"+a.GetName() < b.GetNamespace()+"/"+b.GetName():
				return -1
			}
			return 1
		})
	}
	return list
}

// edit changes one object, or nothing but how it looks.
func (w *world) edit() {
	switch w.r.IntN(14) {
	case 0:
		c := &gatewayv1.GatewayClass{ObjectMeta: w.meta("class", 2, false)}
		c.Spec.ControllerName = pick[gatewayv1.GatewayController](w, compile.ControllerName, compile.ControllerName, "example.com/other")
		if w.r.IntN(4) == 0 {
			c.Spec.ParametersRef = &gatewayv1.ParametersReference{Group: v1alpha1.GroupName, Kind: "GatewayParameters", Name: fmt.Sprint("params", w.r.IntN(2)), Namespace: ptr(gatewayv1.Namespace(pick(w, spaces...)))}
		}
		w.in.Classes = put(w, w.in.Classes, c)
	case 1, 2:
		w.in.Gateways = put(w, w.in.Gateways, w.gateway())
	case 3:
		g := &gatewayv1.ReferenceGrant{ObjectMeta: w.meta("grant", 2, true)}
		g.Spec.From = []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: pick[gatewayv1.Kind](w, "HTTPRoute", "Gateway"), Namespace: gatewayv1.Namespace(pick(w, spaces...))}}
		g.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: pick[gatewayv1.Kind](w, "Service", "Secret")}}
		if w.r.IntN(2) == 0 {
			g.Spec.To[0].Name = ptr(gatewayv1.ObjectName(fmt.Sprint("svc", w.r.IntN(3))))
		}
		w.in.Grants = put(w, w.in.Grants, g)
	case 4:
		n := &corev1.Namespace{ObjectMeta: w.meta("", 1, false)}
		n.Name = pick(w, spaces...)
		n.Labels = map[string]string{"team": pick(w, "blue", "red")}
		w.in.Namespaces = put(w, w.in.Namespaces, n)
	case 5:
		s := &corev1.Service{ObjectMeta: w.meta("svc", 3, true)}
		s.Spec.Ports = []corev1.ServicePort{{Port: 80, Name: pick(w, "", "http")}, {Port: 81, Name: "b", AppProtocol: pick(w, nil, ptr("http"), ptr("https"))}}
		s.Spec.Type = pick(w, corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
		if w.r.IntN(2) == 0 {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: pick(w, "192.0.2.1", "192.0.2.1", "192.0.2.7", "10.9.0.1")}}
		}
		w.in.Services = put(w, w.in.Services, s)
	case 6, 7:
		w.in.EndpointSlices = put(w, w.in.EndpointSlices, w.slice())
	case 8:
		s := &corev1.Secret{ObjectMeta: w.meta("cert", 2, true), Type: corev1.SecretTypeTLS}
		p := w.pairs[w.r.IntN(len(w.pairs))]
		s.Data = map[string][]byte{corev1.TLSCertKey: p[0], corev1.TLSPrivateKeyKey: p[1]}
		if w.r.IntN(4) == 0 {
			s.Data[corev1.TLSPrivateKeyKey] = []byte("x")
		}
		w.in.Secrets = put(w, w.in.Secrets, s)
	case 9:
		w.touch()
	case 11:
		p := &v1alpha1.GatewayParameters{ObjectMeta: w.meta("params", 2, true)}
		p.Spec.Client = pick(w, nil, &v1alpha1.ClientParameters{
			IdleTimeout: pick(w, nil, ptr(v1alpha1.Duration("1s")), ptr(v1alpha1.Duration("2s")), ptr(v1alpha1.Duration("bad"))),
			MaxRequests: pick(w, nil, ptr[int32](5)), TrustedCIDRs: pick(w, nil, &[]v1alpha1.CIDR{}, &[]v1alpha1.CIDR{"10.0.0.0/8"}),
			ProxyProtocol: pick(w, nil, &v1alpha1.ProxyProtocol{Mode: v1alpha1.ProxyProtocolOff}, &v1alpha1.ProxyProtocol{
				Mode: v1alpha1.ProxyProtocolRequired, From: pick(w, nil, []v1alpha1.CIDR{"192.0.2.0/24"}),
			}),
			Limits: pick(w, nil, &v1alpha1.HeadLimits{HeaderCount: pick(w, nil, ptr[int32](50))}),
		})
		p.Spec.AccessLog = pick(w, nil, &v1alpha1.AccessLogParameters{
			Mode: pick(w, nil, ptr(v1alpha1.AccessLogOff)), SamplePercent: pick(w, nil, ptr[int32](5), ptr[int32](500)),
		})
		p.Spec.Workers = pick(w, nil, nil, ptr[int32](2), ptr[int32](4))
		p.Spec.Pressure = pick(w, nil, &v1alpha1.ProcessPressure{MaxConnections: pick(w, nil, ptr[int32](10)), MemoryLimit: pick(w, nil, ptr(v1alpha1.ByteSize("1Gi")))})
		w.in.Parameters = put(w, w.in.Parameters, p)
	case 10:
		w.in.BackendPolicies = put(w, w.in.BackendPolicies, w.policy())
	default:
		w.in.HTTPRoutes = put(w, w.in.HTTPRoutes, w.route())
	}
	if w.r.IntN(40) == 0 {
		w.in.Options = w.options[w.r.IntN(len(w.options))]
	}
}

// touch writes new versions of objects whose specs stay.
func (w *world) touch() {
	w.serial++
	version := fmt.Sprint(w.serial)
	for i, hr := range w.in.HTTPRoutes {
		hr = hr.DeepCopy()
		hr.ResourceVersion = version
		w.in.HTTPRoutes = slices.Clone(w.in.HTTPRoutes)
		w.in.HTTPRoutes[i] = hr
	}
	for i, p := range w.in.BackendPolicies {
		p = p.DeepCopy()
		p.ResourceVersion = version
		w.in.BackendPolicies = slices.Clone(w.in.BackendPolicies)
		w.in.BackendPolicies[i] = p
	}
	for i, s := range w.in.Services {
		s = s.DeepCopy()
		s.ResourceVersion = version
		w.in.Services = slices.Clone(w.in.Services)
		w.in.Services[i] = s
	}
}

func (w *world) gateway() *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: w.meta("gw", 3, true)}
	if w.r.IntN(3) == 0 {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
			Group: v1alpha1.GroupName, Kind: "GatewayParameters", Name: fmt.Sprint("params", w.r.IntN(2)),
		}}
	}
	g.Spec.GatewayClassName = pick[gatewayv1.ObjectName](w, "class0", "class0", "class1", "class9")
	for i := range 1 + w.r.IntN(4) {
		l := gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprint("l", i)), Port: pick[int32](w, 80, 443, 8080),
			Protocol: pick(w, gatewayv1.HTTPProtocolType, gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType, gatewayv1.TCPProtocolType),
			Hostname: pick(w, nil, ptr(gatewayv1.Hostname("*.example.com")), ptr(gatewayv1.Hostname("www.example.com")), ptr(gatewayv1.Hostname("Bad"))),
		}
		if l.Protocol == gatewayv1.HTTPSProtocolType {
			l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{
				{Name: gatewayv1.ObjectName(fmt.Sprint("cert", w.r.IntN(2))), Namespace: ptr(gatewayv1.Namespace(pick(w, spaces...)))},
				{Name: "cert0"},
			}}
		}
		l.AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From:     ptr(pick(w, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}},
		}}
		g.Spec.Listeners = append(g.Spec.Listeners, l)
	}
	if w.r.IntN(3) == 0 {
		g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: pick(w, "10.9.0.2", "10.0.0.1", "0.0.0.0", "")}}
	}
	return g
}

func (w *world) policy() *v1alpha1.BackendPolicy {
	p := &v1alpha1.BackendPolicy{ObjectMeta: w.meta("policy", 3, true)}
	for range 1 + w.r.IntN(2) {
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, gatewayv1.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
				Kind: pick[gatewayv1.Kind](w, "Service", "Service", "Service", "HTTPRoute"), Name: gatewayv1.ObjectName(fmt.Sprint("svc", w.r.IntN(3))),
			},
			SectionName: pick(w, nil, nil, ptr(gatewayv1.SectionName("http")), ptr(gatewayv1.SectionName("b"))),
		})
	}
	p.Spec.Pool = pick(w, nil, &v1alpha1.Pool{Size: ptr(int32(w.r.IntN(4))), Waiting: pick(w, nil, ptr[int32](0))})
	p.Spec.Balancing = pick(w, nil, &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin})
	return p
}

func (w *world) slice() *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: w.meta("slice", 4, true), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("svc", w.r.IntN(3))}
	s.Ports = []discoveryv1.EndpointPort{{Name: ptr(pick(w, "", "http")), Port: ptr[int32](8080)}, {Name: ptr("b"), Port: ptr[int32](8081)}}
	for range w.r.IntN(4) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprint(pick(w, "10.0.0.", "10.0.0.", "127.0.0."), 1+w.r.IntN(4))},
			Conditions: discoveryv1.EndpointConditions{Ready: pick(w, nil, ptr(true), ptr(false)), Serving: ptr(true), Terminating: pick(w, nil, ptr(true))},
		})
	}
	return s
}

func (w *world) route() *gatewayv1.HTTPRoute {
	hr := &gatewayv1.HTTPRoute{ObjectMeta: w.meta("route", 8, true)}
	for range 1 + w.r.IntN(2) {
		ref := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprint("gw", w.r.IntN(4))), Namespace: ptr(gatewayv1.Namespace(pick(w, spaces...)))}
		if w.r.IntN(3) == 0 {
			ref.SectionName = ptr(gatewayv1.SectionName(fmt.Sprint("l", w.r.IntN(3))))
		}
		hr.Spec.ParentRefs = append(hr.Spec.ParentRefs, ref)
	}
	if w.r.IntN(2) == 0 {
		hr.Spec.Hostnames = []gatewayv1.Hostname{pick[gatewayv1.Hostname](w, "www.example.com", "*.example.com", "other.test", "1.2.3.4")}
	}
	for range 1 + w.r.IntN(3) {
		rule := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type:  ptr(pick(w, gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression)),
			Value: ptr(pick(w, "/", "/a", "/b", "[", "/%61")),
		}}}}
		for range w.r.IntN(3) {
			rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Name: gatewayv1.ObjectName(fmt.Sprint("svc", w.r.IntN(4))), Port: ptr(pick[int32](w, 80, 80, 81, 82)),
					Namespace: pick(w, nil, nil, ptr(gatewayv1.Namespace(pick(w, spaces...)))),
				},
			}})
		}
		hr.Spec.Rules = append(hr.Spec.Rules, rule)
	}
	return hr
}

// TestIncremental edits objects at random: a compiler that keeps what it can must
// say the same as one that starts afresh, and its snapshots must be valid.
func TestIncremental(t *testing.T) {
	seeds := uint64(25)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		w := newWorld(t, seed)
		var kept compile.Compiler
		for step := range 150 {
			for range 1 + w.r.IntN(2) {
				w.edit()
			}
			got, gotReport := kept.Compile(w.in)
			want, wantReport := compile.Compile(w.in)
			if err := got.Validate(); err != nil {
				t.Fatalf("seed %d, step %d: invalid: %v", seed, step, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: snapshots differ (-fresh +kept):\n%s", seed, step, cmp.Diff(render(reflect.ValueOf(want)), render(reflect.ValueOf(got))))
			}
			if !reflect.DeepEqual(gotReport, wantReport) {
				t.Fatalf("seed %d, step %d: reports differ (-fresh +kept):\n%s", seed, step,
					cmp.Diff(renderReport(wantReport, wantReport.Problems), renderReport(gotReport, gotReport.Problems)))
			}
			if got.Hash() != want.Hash() {
				t.Fatalf("seed %d, step %d: hashes differ", seed, step)
			}
			if len(w.in.Options.Addresses.Pool) > 0 {
				w.in.Assigned = gotReport.Assigned
			}
		}
	}
}

// TestOrder compiles the objects of every case in other orders.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		want, wantReport := compile.Compile(w.in)
		in := w.in
		in.HTTPRoutes = slices.Clone(in.HTTPRoutes)
		r.Shuffle(len(in.HTTPRoutes), func(i, j int) { in.HTTPRoutes[i], in.HTTPRoutes[j] = in.HTTPRoutes[j], in.HTTPRoutes[i] })
		in.Gateways = slices.Clone(in.Gateways)
		slices.Reverse(in.Gateways)
		in.EndpointSlices = slices.Clone(in.EndpointSlices)
		slices.Reverse(in.EndpointSlices)
		got, gotReport := compile.Compile(in)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotReport, wantReport) {
			t.Fatalf("seed %d: the order of the input shows", seed)
		}
	}
}

// parts are the pointers of a snapshot, by name.
func parts(s *ir.Snapshot) map[string]any {
	out := make(map[string]any)
	for _, k := range s.Sockets {
		out["socket "+k.Name] = k
		for _, l := range k.Listeners {
			out["listener "+l.Name] = l
			out["tls "+l.Name] = l.TLS
			for _, r := range l.Routes {
				out["route "+l.Name+" "+r.Name] = r
				for _, x := range r.Rules {
					out[fmt.Sprint("rule ", l.Name, " ", r.Name, " ", x.Index)] = x
				}
			}
		}
	}
	for _, c := range s.Clusters {
		out["cluster "+c.Name] = c
	}
	return out
}

// changed lists the parts that are other pointers, are new, or are gone.
func changed(was, is *ir.Snapshot) []string {
	a, b := parts(was), parts(is)
	var out []string
	for name, p := range b {
		if a[name] != p {
			out = append(out, name)
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			out = append(out, "- "+name)
		}
	}
	slices.Sort(out)
	return out
}

// TestKept checks that a change makes new only what it touches.
func TestKept(t *testing.T) {
	base := func(t *testing.T) compile.Input {
		in, problems, _, _ := loadCase(t, "testdata/kept")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return in
	}
	replace := func(list []*gatewayv1.HTTPRoute, name string, f func(*gatewayv1.HTTPRoute)) []*gatewayv1.HTTPRoute {
		list = slices.Clone(list)
		for i, hr := range list {
			if hr.Name == name {
				list[i] = hr.DeepCopy()
				f(list[i])
			}
		}
		return list
	}
	for _, tt := range []struct {
		name string
		edit func(*compile.Input)
		want []string
	}{
		{"nothing", func(in *compile.Input) {}, nil},
		{"new objects that say the same", func(in *compile.Input) {
			in.HTTPRoutes = replace(in.HTTPRoutes, "a", func(*gatewayv1.HTTPRoute) {})
			in.Services = slices.Clone(in.Services)
			in.Services[0] = in.Services[0].DeepCopy()
			in.Gateways = slices.Clone(in.Gateways)
			in.Gateways[0] = in.Gateways[0].DeepCopy()
			in.Secrets = slices.Clone(in.Secrets)
			in.Secrets[0] = in.Secrets[0].DeepCopy()
		}, nil},
		{"an endpoint", func(in *compile.Input) {
			s := in.EndpointSlices[0].DeepCopy()
			s.Endpoints[0].Addresses[0] = "10.0.0.99"
			in.EndpointSlices = slices.Clone(in.EndpointSlices)
			in.EndpointSlices[0] = s
		}, []string{"cluster default/one:80"}},
		{"one rule", func(in *compile.Input) {
			in.HTTPRoutes = replace(in.HTTPRoutes, "a", func(hr *gatewayv1.HTTPRoute) { hr.Spec.Rules[1].Matches[0].Path.Value = ptr("/new") })
		}, []string{"listener default/edge/http", "route default/edge/http default/a", "rule default/edge/http default/a 1", "socket 0.0.0.0:80"}},
		{"a route less", func(in *compile.Input) {
			in.HTTPRoutes = slices.DeleteFunc(slices.Clone(in.HTTPRoutes), func(hr *gatewayv1.HTTPRoute) bool { return hr.Name == "b" })
		}, []string{"- cluster default/two:80", "- route default/edge/http default/b", "- rule default/edge/http default/b 0", "listener default/edge/http", "socket 0.0.0.0:80"}},
		{"a certificate", func(in *compile.Input) {
			s := in.Secrets[0].DeepCopy()
			s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = keyPair(t, "renewed", []string{"www.example.com"}, bigInt(7))
			in.Secrets = []*corev1.Secret{s}
		}, []string{"listener default/edge/https", "socket 0.0.0.0:443", "tls default/edge/https"}},
		{"a Service that changes its protocol", func(in *compile.Input) {
			s := in.Services[1].DeepCopy()
			s.Spec.Ports[0].AppProtocol = ptr("https")
			in.Services = slices.Clone(in.Services)
			in.Services[1] = s
		}, []string{"- cluster default/two:80", "listener default/edge/http", "route default/edge/http default/b", "rule default/edge/http default/b 0", "socket 0.0.0.0:80"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := base(t)
			var c compile.Compiler
			was, report := c.Compile(in)
			tt.edit(&in)
			is, reportNow := c.Compile(in)
			if got := changed(was, is); !slices.Equal(got, tt.want) {
				t.Errorf("changed:\n%s", cmp.Diff(tt.want, got))
			}
			if (was == is) != (tt.want == nil) {
				t.Errorf("the snapshot itself: same pointer is %v", was == is)
			}
			for i, r := range reportNow.Routes {
				if r.Name == "c" && r != report.Routes[2] {
					t.Errorf("the report of an untouched route is new: %d", i)
				}
			}
		})
	}
}
