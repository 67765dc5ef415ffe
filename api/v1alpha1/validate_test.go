package v1alpha1_test

import (
	"os"
	"reflect"
	"regexp"
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

func TestByteSize(t *testing.T) {
	for text, want := range map[v1alpha1.ByteSize]int64{
		"1Ki": 1 << 10, "512Mi": 512 << 20, "3Gi": 3 << 30, "999999999Gi": 999_999_999 << 30,
		"": 0, "0Mi": 0, "1": 0, "1M": 0, "-1Mi": 0, "1.5Gi": 0, "1Ti": 0, "1000000000Gi": 0, "1Mi ": 0,
	} {
		if got := text.Value(); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	if v := (*v1alpha1.ByteSize)(nil).Value(); v != 0 {
		t.Errorf("none is %d", v)
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

// fields returns the paths of what can be set in a type, and whether it is a number
// or a length of time, which have two ends. A list counts as one field. What is true
// or false can't be refused.
func fields(t reflect.Type, path string, found map[string]bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields(t.Field(i).Type, path+"."+name, found)
		}
	case reflect.Bool:
	case reflect.Int32, reflect.Int64:
		found[path] = true
	default:
		found[path] = t == reflect.TypeFor[v1alpha1.Duration]()
	}
}

// Of each field there are cases that are refused, with words of what is allowed, and
// of what has two ends cases beyond either.
func TestEveryFieldIsRefused(t *testing.T) {
	index := regexp.MustCompile(`\[.*`)
	check := func(spec reflect.Type, refused map[string]int) {
		t.Helper()
		all := make(map[string]bool)
		fields(spec, "spec", all)
		for path, ends := range all {
			switch n := refused[path]; {
			case n == 0:
				t.Errorf("%s is never refused", path)
			case ends && n == 1:
				t.Errorf("%s is refused at one end only", path)
			}
		}
	}
	refused := make(map[string]int)
	for _, c := range load[v1alpha1.BackendPolicySpec](t, "testdata/backendpolicies.yaml") {
		if c.Field != "" && c.Message != "" {
			refused[index.ReplaceAllString(c.Field, "")]++
		}
	}
	check(reflect.TypeFor[v1alpha1.BackendPolicySpec](), refused)
	clear(refused)
	for _, c := range load[v1alpha1.GatewayParametersSpec](t, "testdata/gatewayparameters.yaml") {
		if c.Field != "" && c.Message != "" {
			refused[index.ReplaceAllString(c.Field, "")]++
		}
	}
	check(reflect.TypeFor[v1alpha1.GatewayParametersSpec](), refused)
}
