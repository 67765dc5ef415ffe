package kube

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// decodedRoute returns a route none of whose texts is shared with another one's.
func decodedRoute(name string) *gatewayv1.HTTPRoute {
	text := strings.Clone
	kind, path := gatewayv1.Kind(text("Gateway")), gatewayv1.PathMatchType(text("PathPrefix"))
	parent := gatewayv1.ParentReference{Kind: &kind, Name: gatewayv1.ObjectName(text("edge"))}
	return &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{Kind: text("HTTPRoute")},
		ObjectMeta: metav1.ObjectMeta{Namespace: text("shop"), Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")},
			Rules:           []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &path}}}}},
		},
		Status: gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{{
			ParentRef: *parent.DeepCopy(), ControllerName: "example.com/other",
			Conditions: []metav1.Condition{{
				Type: text("Accepted"), Status: metav1.ConditionTrue, Reason: text("Accepted"), Message: text("it is attached"),
				LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)),
			}},
		}}}},
	}
}

// Routes that say the same share its memory, and each still says what it said.
func TestWords(t *testing.T) {
	a, b := decodedRoute("a"), decodedRoute("b")
	want := a.DeepCopy()
	texts := func(r *gatewayv1.HTTPRoute) map[string]string {
		parent := r.Status.Parents[0]
		return map[string]string{
			"namespace": r.Namespace, "kind": r.Kind, "reference": string(*r.Spec.ParentRefs[0].Kind),
			"path": string(*r.Spec.Rules[0].Matches[0].Path.Type), "condition": parent.Conditions[0].Type,
			"message": parent.Conditions[0].Message, "parent": string(*parent.ParentRef.Kind),
		}
	}
	for name, text := range texts(a) {
		if unsafe.StringData(text) == unsafe.StringData(texts(b)[name]) {
			t.Fatalf("%s is shared before", name)
		}
	}
	var held []unique.Handle[string] // a collection between the two would have the second one start anew
	for _, text := range texts(a) {
		held = append(held, unique.Make(text))
	}
	routes := httpRoutes()
	routes.strip(a)
	routes.strip(b)
	for name, text := range texts(a) {
		if unsafe.StringData(text) != unsafe.StringData(texts(b)[name]) {
			t.Errorf("%s is not shared", name)
		}
	}
	runtime.KeepAlive(held)
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("the route says something else (-was +is):\n%s", diff)
	}
}
