package compile_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// TestLess compares with the order of the texts "namespace/name", which the
// snapshot has and which Gateway API asks for.
func TestLess(t *testing.T) {
	var list []*corev1.Service
	for _, ns := range []string{"", "a", "a-b", "a-b-c", "a0", "ab", "b"} {
		for _, name := range []string{"a", "a-b", "a.b", "z"} {
			list = append(list, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
		}
	}
	for _, a := range list {
		for _, b := range list {
			want := a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
			if got := compile.Less(a, b); got != want {
				t.Errorf("%s/%s before %s/%s is %v", a.Namespace, a.Name, b.Namespace, b.Name, got)
			}
		}
	}
	slices.Reverse(list)
	compile.Sort(list)
	if !slices.IsSortedFunc(list, func(a, b *corev1.Service) int {
		if compile.Less(a, b) {
			return -1
		}
		return 1
	}) {
		t.Error("Sort does not sort")
	}
}

func TestProblem(t *testing.T) {
	for want, p := range map[string]compile.Problem{
		"":                  {File: "a.yaml"},
		"Service a/b":       {Kind: "Service", Namespace: "a", Name: "b"},
		"GatewayClass edge": {Kind: "GatewayClass", Name: "edge"},
	} {
		if got := p.Object(); got != want {
			t.Errorf("object %q, want %q", got, want)
		}
	}
	p := compile.Problem{Severity: compile.Error, Kind: "Service", Namespace: "a", Name: "b", Field: "spec", Message: "is bad"}
	if got := p.String(); got != "Service a/b: spec: is bad" {
		t.Error(got)
	}
	p = compile.Problem{Severity: compile.Warning, File: "a.yaml", Message: "is odd"}
	if got := p.String(); got != "a.yaml:1: warning: is odd" {
		t.Error(got)
	}
	text, err := json.Marshal(compile.Problem{Severity: compile.Warning, Message: "m"})
	if err != nil || string(text) != `{"severity":"warning","message":"m"}` {
		t.Errorf("%s, %v", text, err)
	}
}
