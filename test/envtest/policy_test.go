package envtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
)

// The tests of policies do not run beside others: every replica of the API server
// says something about every policy.

// policy makes a BackendPolicy for a Service, which is removed at the end.
func (w *world) policy(name, service string, edit func(*v1alpha1.BackendPolicy)) *v1alpha1.BackendPolicy {
	w.Helper()
	p := &v1alpha1.BackendPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec:       v1alpha1.BackendPolicySpec{TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{target(service, "")}},
	}
	if edit != nil {
		edit(p)
	}
	w.create(p)
	w.Cleanup(func() { _ = w.Delete(w.ctx, p.DeepCopy()) }) // it may be gone
	return p
}

func target(service, port string) gatewayv1.LocalPolicyTargetReferenceWithSectionName {
	t := gatewayv1.LocalPolicyTargetReferenceWithSectionName{
		LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(service)},
	}
	if port != "" {
		section := gatewayv1.SectionName(port)
		t.SectionName = &section
	}
	return t
}

// wantPolicy waits until a policy's ancestors say want: target and conditions
// each; those of another controller with its name before.
func (w *world) wantPolicy(p *v1alpha1.BackendPolicy, want ...string) {
	w.Helper()
	w.eventually(func() string {
		w.refresh(p)
		var got []string
		for _, a := range p.Status.Ancestors {
			name := string(a.AncestorRef.Name)
			if a.AncestorRef.SectionName != nil {
				name += ":" + string(*a.AncestorRef.SectionName)
			}
			if a.ControllerName != w.controller {
				name = string(a.ControllerName) + " " + name
			}
			got = append(got, name+" "+says(a.Conditions))
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("policy %s says\n %s, want\n %s", p.Name, strings.Join(got, "\n "), strings.Join(want, "\n "))
		}
		return ""
	})
}

// backend makes a Service with ports http, 80, and admin, 81.
func (w *world) backend(name string) *corev1.Service {
	w.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 81}}},
	}
	w.create(s)
	return s
}

// to sends a route's requests to a Service's port.
func to(service string, port gatewayv1.PortNumber) func(*gatewayv1.HTTPRoute) {
	return func(hr *gatewayv1.HTTPRoute) {
		hr.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: &port},
		}}}}}
	}
}

// cluster returns a cluster that the replica serves, or nil.
func (p *plane) cluster(name string) *ir.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot == nil {
		return nil
	}
	for _, c := range p.snapshot.Clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// The API server refuses what Validate refuses, with the same words.
func TestCRDRefuses(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"BackendPolicy", "GatewayParameters"} {
		file := "../../api/v1alpha1/testdata/" + map[string]string{"BackendPolicy": "backendpolicies.yaml", "GatewayParameters": "gatewayparameters.yaml"}[kind]
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Name, Field, Message string
			Spec                 map[string]any
		}
		if err := yaml.UnmarshalStrict(text, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(kind+"/"+c.Name, func(t *testing.T) {
				o := &unstructured.Unstructured{Object: map[string]any{"spec": c.Spec}}
				o.SetAPIVersion(v1alpha1.GroupVersion.String())
				o.SetKind(kind)
				o.SetNamespace(w.name)
				o.SetName("case")
				err := w.Create(t.Context(), o, client.DryRunAll)
				switch {
				case c.Field == "" && err != nil:
					t.Errorf("refused: %v", err)
				case c.Field != "" && err == nil:
					t.Error("not refused")
				case c.Field != "" && !(strings.Contains(err.Error(), c.Field+": ") && strings.Contains(err.Error(), c.Message)):
					t.Errorf("it says %v, want %s and %q", err, c.Field, c.Message)
				}
			})
		}
	}
}

// A policy's life: its Service comes, an older one is in its way and goes; what
// others say of it stays; the data plane is told each time.
func TestPolicyStatus(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	w.class()
	w.gateway("gw")
	size := func(n int32) func(*v1alpha1.BackendPolicy) {
		return func(p *v1alpha1.BackendPolicy) { p.Spec.Pool = &v1alpha1.Pool{Size: &n} }
	}
	wantSize := func(cluster string, want int) {
		t.Helper()
		w.eventually(func() string {
			if c := r.plane.cluster(cluster); c == nil || c.Pool.Size != want {
				return fmt.Sprintf("cluster %s is %+v, want pool size %d", cluster, c, want)
			}
			return ""
		})
	}
	old := w.policy("z-old", "web", size(50))
	w.wantPolicy(old, "web Accepted=False/TargetNotFound@1")
	w.backend("web")
	w.wantPolicy(old, "web Accepted=True/Accepted@1")
	w.route("web", to("web", 80))
	w.route("admin", to("web", 81))
	wantSize(w.name+"/web:80", 50)
	wantSize(w.name+"/web:81", 50)

	time.Sleep(1100 * time.Millisecond) // ages are in seconds
	young := w.policy("a-young", "web", size(7))
	w.wantPolicy(young, "web Accepted=False/Conflicted@1")
	port := w.policy("port", "web", func(p *v1alpha1.BackendPolicy) {
		size(3)(p)
		p.Spec.TargetRefs[0] = target("web", "admin")
	})
	w.wantPolicy(port, "web:admin Accepted=True/Accepted@1")
	wantSize(w.name+"/web:81", 3)
	wantSize(w.name+"/web:80", 50)

	updateStatus(w, young, func(p *v1alpha1.BackendPolicy) {
		p.Status.Ancestors = append(p.Status.Ancestors, gatewayv1.PolicyAncestorStatus{
			AncestorRef: gatewayv1.ParentReference{Name: "web"}, ControllerName: "example.com/other",
			Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}},
		})
	})
	w.gone(old)
	other := "example.com/other web Accepted=True/Accepted@1"
	w.wantPolicy(young, "web Accepted=True/Accepted@1", other)
	wantSize(w.name+"/web:80", 7)
	update(w, young, size(8))
	w.wantPolicy(young, "web Accepted=True/Accepted@2", other)
	wantSize(w.name+"/web:80", 8)

	// All is said: nothing is written.
	w.settled(r)
	quiet := len(r.traffic.writes())
	update(w, young, func(p *v1alpha1.BackendPolicy) { p.Labels = map[string]string{"touched": "yes"} })
	time.Sleep(time.Second)
	for _, q := range r.traffic.writes()[quiet:] {
		t.Errorf("%s %s though nothing changed", q.method, q.path)
	}
	w.gone(port)
	w.gone(young)
	wantSize(w.name+"/web:81", 0)
}
