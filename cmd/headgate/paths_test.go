package main

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/message"
)

// rulePath compiles a route with one exact path, and returns the path as the data
// plane gets it; ok is false when it is refused.
func rulePath(path string) (normal string, ok bool) {
	opts, err := compileOptions([]string{"0.0.0.0"})
	if err != nil {
		panic(err)
	}
	exact := gatewayv1.PathMatchExact
	snap, _ := compile.Compile(compile.Input{
		Options: opts,
		Classes: []*gatewayv1.GatewayClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName},
		}},
		Gateways: []*gatewayv1.Gateway{{
			ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "default"},
			Spec: gatewayv1.GatewaySpec{
				GatewayClassName: "c", Listeners: []gatewayv1.Listener{{Name: "l", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
			},
		}},
		HTTPRoutes: []*gatewayv1.HTTPRoute{{
			ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "default"},
			Spec: gatewayv1.HTTPRouteSpec{
				CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "g"}}},
				Rules:           []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &exact, Value: &path}}}}},
			},
		}},
	})
	routes := snap.Sockets[0].Listeners[0].Routes
	if len(routes) == 0 {
		return "", false
	}
	return routes[0].Rules[0].Matches[0].Path.Value, true
}

// TestPathsAgree: the path of a rule has the form that the path of a request has
// when the two are compared, or no request could ever match it.
func TestPathsAgree(t *testing.T) {
	var paths []string
	for c := range 256 {
		paths = append(paths, fmt.Sprintf("/a%cb", c), fmt.Sprintf("/a%%%02xb", c), fmt.Sprintf("/a%%%02Xb", c), fmt.Sprintf("/%%%02x", c))
	}
	paths = append(paths, "/", "/a/", "/a//b", "//", "/.", "/..", "/a/./b", "/a/../b", "/a/..", "/...", "/.a", "/a.", "/..;x", "/.;", "/..a;x",
		"/%2e%2e/a", "/%2E;/a", "/a%", "/a%2", "/a%zz", "/%c3%a9", "/~a", "/a;b=c,d", "*", "", "a")
	accepted := 0
	for _, p := range paths {
		got, ok := rulePath(p)
		if !ok {
			continue
		}
		accepted++
		want, err := message.NormalizePath(nil, []byte(p))
		if err != nil {
			t.Errorf("a rule may have %q, and a request may not: %v", p, err)
		} else if string(want) != got {
			t.Errorf("%q is %q in a rule and %q in a request", p, got, want)
		}
	}
	if accepted < 400 {
		t.Errorf("only %d paths were accepted", accepted)
	}
}

func FuzzPathsAgree(f *testing.F) {
	f.Add("/a%2e/b")
	f.Fuzz(func(t *testing.T, p string) {
		got, ok := rulePath(p)
		if !ok {
			return
		}
		if want, err := message.NormalizePath(nil, []byte(p)); err != nil || string(want) != got {
			t.Errorf("%q is %q in a rule and %q in a request (%v)", p, got, want, err)
		}
	})
}
