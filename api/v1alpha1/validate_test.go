package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/api/v1alpha1"
)

// specs are cases that the API server is asked about as well, in test/envtest.
type specs[T any] []struct {
	Name, Field, Message string
	Spec                 T
}

func load[T any](t *testing.T, file string) specs[T] {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list specs[T]
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// says compares what was found with what a case expects: one fault of that field
// with those words, or none.
func says(t *testing.T, errs field.ErrorList, path, message string) {
	t.Helper()
	switch {
	case path == "" && len(errs) > 0:
		t.Errorf("refused: %v", errs)
	case path != "" && (len(errs) != 1 || errs[0].Field != path || !strings.Contains(errs[0].ErrorBody(), message)):
		t.Errorf("got %v, want one fault of %s that says %q", errs, path, message)
	}
}

func TestBackendPolicy(t *testing.T) {
	for _, c := range load[v1alpha1.BackendPolicySpec](t, "testdata/backendpolicies.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			p := &v1alpha1.BackendPolicy{Spec: c.Spec}
			says(t, p.Validate(), c.Field, c.Message)
		})
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]string{
		"0s": "0s", "1h30m": "1h30m0s", "99999h": "99999h0m0s", "10s500ms": "10.5s",
		"": "0s", "1": "0s", "-1s": "0s", "1.5s": "0s", "100000s": "0s", "1h1h1h1h1h": "0s",
	} {
		if got := text.Value().String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if v := (*v1alpha1.Duration)(nil).Value(); v != 0 {
		t.Errorf("none is %s", v)
	}
}

func TestGatewayParameters(t *testing.T) {
	for _, c := range load[v1alpha1.GatewayParametersSpec](t, "testdata/gatewayparameters.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			p := &v1alpha1.GatewayParameters{Spec: c.Spec}
			says(t, p.Validate(), c.Field, c.Message)
		})
	}
}
