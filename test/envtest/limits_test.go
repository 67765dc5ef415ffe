package envtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
)

// longName returns a name of n characters, as Kubernetes' objects may have: labels
// of 63 at most, of which the first is the given one.
func longName(first string, n int) string {
	name := first
	for len(name) < n {
		if len(name)%64 == 63 {
			name += "."
		} else {
			name += "x"
		}
	}
	return name
}

// Objects as large as the API server lets them be: 64 listeners, 128 matches with
// 16 headers each, 32 parents, and as many annotations as there may be.
func TestLargestObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	annotations := map[string]string{"example.com/large": strings.Repeat("a", 255<<10)} // 256 KiB in all
	gw := w.gateway("gw", func(gw *gatewayv1.Gateway) {
		gw.Annotations = annotations
		gw.Spec.Listeners = nil
		for i := range 64 {
			host := gatewayv1.Hostname(longName(fmt.Sprintf("l%d", i), 253))
			gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{
				Name: gatewayv1.SectionName(fmt.Sprintf("l-%d", i)), Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &host,
			})
		}
	})
	hr := w.route("hr", func(hr *gatewayv1.HTTPRoute) {
		hr.Annotations = annotations
		hr.Spec.Hostnames, hr.Spec.ParentRefs = nil, nil
		for i := range 16 {
			hr.Spec.Hostnames = append(hr.Spec.Hostnames, *gw.Spec.Listeners[i].Hostname)
		}
		for i := range 32 {
			section := gatewayv1.SectionName(fmt.Sprintf("l-%d", i))
			hr.Spec.ParentRefs = append(hr.Spec.ParentRefs, gatewayv1.ParentReference{Name: "gw", SectionName: &section})
		}
		rule := hr.Spec.Rules[0]
		hr.Spec.Rules = nil
		for i := range 16 {
			one := *rule.DeepCopy()
			one.Matches = nil
			for j := range 8 {
				path := fmt.Sprintf("/%d/%d/%s", i, j, strings.Repeat("p", 1000))
				m := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: &path}}
				for k := range 16 {
					m.Headers = append(m.Headers, gatewayv1.HTTPHeaderMatch{
						Name: gatewayv1.HTTPHeaderName(fmt.Sprintf("X-%d", k)), Value: strings.Repeat("v", 256),
					})
				}
				one.Matches = append(one.Matches, m)
			}
			hr.Spec.Rules = append(hr.Spec.Rules, one)
		}
	})
	w.wantGateway(gw, programmed(1))
	w.eventually(func() string {
		w.refresh(hr)
		if n := len(hr.Status.Parents); n != 32 {
			return fmt.Sprintf("%d parents have a status, want 32", n)
		}
		return ""
	})
	for i, p := range hr.Status.Parents {
		want := "Accepted=True/Accepted@1"
		if i >= 16 {
			want = "Accepted=False/NoMatchingListenerHostname@1"
		}
		if got := says(p.Conditions); !strings.HasPrefix(got, want) || p.ParentRef.SectionName == nil || string(*p.ParentRef.SectionName) != fmt.Sprintf("l-%d", i) {
			t.Errorf("parent %d says %s, want %s", i, got, want)
		}
	}
	if n := len(gw.Status.Listeners); n != 64 {
		t.Errorf("%d listeners have a status, want 64", n)
	}
	matches := 0
	r.plane.mu.Lock()
	for _, l := range r.plane.snapshot.Sockets[0].Listeners {
		for _, hr := range l.Routes {
			for _, rule := range hr.Rules {
				matches += len(rule.Matches)
			}
		}
	}
	r.plane.mu.Unlock()
	if matches != 16*128 {
		t.Errorf("%d matches are served, want 128 on each of 16 listeners", matches)
	}
	w.settled(r)
	for _, q := range r.traffic.writes() {
		if q.status >= 400 && q.status != 409 {
			t.Errorf("%s %s was answered %d", q.method, q.path, q.status)
		}
	}
	n := len(r.traffic.writes())
	time.Sleep(time.Second)
	if more := r.traffic.writes()[n:]; len(more) > 0 {
		t.Errorf("writes though nothing changed: %v", more)
	}
}

// Names as long as they may be, all together.
func TestLongestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := *w
	long.name = longName(w.name+"-", 63)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: long.name}})
	class := longName("class-"+w.name, 253)
	w.create(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: gatewayv1.GatewayClassSpec{ControllerName: w.controller}})
	r := w.start(func(o *controllers.ManagerOptions) {
		o.Election = controllers.Election{Namespace: long.name, Name: "headgate-leader", Identity: strings.Repeat("i", 253)}
	})
	host := gatewayv1.Hostname(longName("host", 253))
	section := gatewayv1.SectionName(longName("listener", 253))
	chain, key := pair(t, string(host))
	secret := longName("secret", 253)
	long.secret(secret, chain, key)
	service := strings.Repeat("s", 63)
	long.backend(service)
	gw := long.gateway(longName("gw", 253), long.https(secret), func(gw *gatewayv1.Gateway) {
		gw.Spec.GatewayClassName = gatewayv1.ObjectName(class)
		gw.Spec.Listeners[0].Name, gw.Spec.Listeners[0].Hostname = section, &host
	})
	hr := long.route(longName("hr", 253), to(service, 80), func(hr *gatewayv1.HTTPRoute) {
		hr.Spec.ParentRefs[0].Name, hr.Spec.ParentRefs[0].SectionName = gatewayv1.ObjectName(gw.Name), &section
		hr.Spec.Hostnames = []gatewayv1.Hostname{host}
		rule := section
		hr.Spec.Rules[0].Name = &rule
	})
	long.wantGateway(gw, programmed(1))
	long.wantRoute(hr, "("+gw.Name+") Accepted=True/Accepted@1 ResolvedRefs=True/ResolvedRefs@1")
	long.eventually(func() string {
		s := long.service(gw)
		if s == nil {
			return "there is no Service"
		}
		for key, value := range s.Labels {
			if len(value) > 63 {
				t.Errorf("label %s is %q", key, value)
			}
		}
		return unlessContains(s.Labels["gateway.networking.k8s.io/gateway-class-name"], "class-"+w.name)
	})
	if got := r.plane.routes(); len(got) != 1 || got[0] != long.name+"/"+hr.Name {
		t.Errorf("served are %v", got)
	}
	var lease leaseHolder
	lease.name = "headgate-leader"
	if err := lease.read(&long); err != nil || len(lease.identity) != 253 {
		t.Errorf("the lease is held by %q, %v", lease.identity, err)
	}
	for _, q := range r.traffic.writes() {
		if q.status >= 400 && q.status != 409 {
			t.Errorf("%s %s was answered %d", q.method, q.path, q.status)
		}
	}
}

// A Secret through all that can become of it: each state is told, and the listener
// has the certificate exactly while there is a good one.
func TestSecretLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start()
	w.class()
	gw := w.gateway("gw", w.https("cert"))
	chain, key := pair(t, "a.example.com")
	_, otherKey := pair(t, "a.example.com")
	certificates := func() int {
		r.plane.mu.Lock()
		defer r.plane.mu.Unlock()
		return len(r.plane.snapshot.Sockets[0].Listeners[0].TLS.Certificates)
	}
	bad := func(what string, parts ...string) {
		t.Helper()
		w.eventually(func() string {
			w.refresh(gw)
			cs := gw.Status.Listeners
			if len(cs) == 0 {
				return what + ": no status"
			}
			resolved := cs[0].Conditions[2]
			pairs := []string{says(cs[0].Conditions), "Accepted=True/Accepted@1 Programmed=False/Invalid@1 ResolvedRefs=False/InvalidCertificateRef@1"}
			for _, p := range parts {
				pairs = append(pairs, resolved.Message, p)
			}
			if why := unlessContains(pairs...); why != "" {
				return what + ": " + why
			}
			if n := certificates(); n != 0 {
				return fmt.Sprintf("%s: %d certificates are served", what, n)
			}
			return ""
		})
	}
	good := func() {
		t.Helper()
		w.wantGateway(gw, programmed(1))
		w.eventually(func() string {
			if n := certificates(); n != 1 {
				return fmt.Sprintf("%d certificates are served, want 1", n)
			}
			return ""
		})
	}
	set := func(s *corev1.Secret, chain, key []byte) {
		t.Helper()
		update(w, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"tls.crt": chain, "tls.key": key} })
	}
	bad("missing", "does not exist")
	s := w.secret("cert", []byte("\x00\xff not a certificate"), []byte("neither a key"))
	bad("garbage", "Secret "+w.name+"/cert")
	set(s, chain, key)
	good()
	set(s, chain, otherKey)
	bad("another key", "Secret "+w.name+"/cert")
	set(s, chain, key)
	good()
	set(s, []byte{}, []byte{})
	bad("empty", "Secret "+w.name+"/cert")
	// As large as a Secret may be: a chain that never ends, then one of garbage.
	set(s, []byte(strings.Repeat(string(chain), (1<<20-len(key))/len(chain))), key)
	good()
	set(s, []byte(strings.Repeat("-----BEGIN CERTIFICATE-----\n", (1<<20-len(key))/28)), key)
	bad("huge", "Secret "+w.name+"/cert")
	w.gone(s)
	bad("deleted", "does not exist")
	opaque := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "cert"}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("hunter2")}}
	w.create(opaque)
	bad("wrong type", "Secret "+w.name+"/cert")
	if strings.Contains(gw.Status.Listeners[0].Conditions[2].Message, "hunter2") {
		t.Error("the status tells what is in the Secret")
	}
	w.gone(opaque)
	w.secret("cert", chain, key)
	good()
}
