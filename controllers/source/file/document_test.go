package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []part
	}{
		{"one", "a: 1\n", []part{{0, "a: 1\n"}}},
		{"empty", "", []part{{0, ""}}},
		{"two", "a: 1\n---\nb: 1\n", []part{{0, "a: 1\n"}, {1, "\nb: 1\n"}}},
		{"leading mark", "---\na: 1", []part{{0, ""}, {0, "\na: 1"}}},
		{"comment on the mark", "a: 1\n--- # next\nb: 1", []part{{0, "a: 1\n"}, {1, " # next\nb: 1"}}},
		{"content on the mark", "--- {a: 1}\n", []part{{0, ""}, {0, " {a: 1}\n"}}},
		{"CRLF", "a: 1\r\n---\r\nb: 1\r\n", []part{{0, "a: 1\r\n"}, {1, "\r\nb: 1\r\n"}}},
		{"mark at the end", "a: 1\n---", []part{{0, "a: 1\n"}, {1, ""}}},
		{"no marks", "a: |\n  ---\n  x\n----\n---b", []part{{0, "a: |\n  ---\n  x\n----\n---b"}}},
		{"PEM", "-----BEGIN X-----\n", []part{{0, "-----BEGIN X-----\n"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, split(tt.text), cmp.AllowUnexported(part{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBlank(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "\n \n": true, "# a\n  # b\n": true, "...\n": true, "%YAML 1.2\n": true, "a: 1": false, "# a\n{}": false,
	} {
		if blank(text) != want {
			t.Errorf("blank(%q) is %v", text, !want)
		}
	}
}

// line finds a marked line: the one with "<-" and the number.
func marked(text string) (string, int) {
	for i, l := range strings.Split(text, "\n") {
		if strings.HasSuffix(l, "#<-") {
			return strings.ReplaceAll(text, "#<-", ""), i + 1
		}
	}
	return text, 0
}

// TestFaults checks what is said of files that a cluster would refuse, and where.
// The line is marked.
func TestFaults(t *testing.T) {
	const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
spec:
`
	for _, tt := range []struct {
		name, text, want string
	}{
		{"unknown field", route + "  rulez: [] #<-\n", `HTTPRoute default/web spec.rulez: unknown field`},
		{"unknown field in a list", route + "  rules:\n  - matches: []\n  - backendRefs:\n    - name: a\n      prt: 80 #<-\n",
			`HTTPRoute default/web spec.rules[1].backendRefs[0].prt: unknown field`},
		{"case of a field", route + "  hostNames: [a] #<-\n", `HTTPRoute default/web spec.hostNames: unknown field`},
		{"wrong type", route + "  rules:\n  - backendRefs:\n    - name: a\n      port: \"80\" #<-\n",
			`HTTPRoute default/web spec.rules.backendRefs.port: is a string, and must be a number`},
		{"list for a value", route + "  hostnames: a.example.com #<-\n",
			`HTTPRoute default/web spec.hostnames: is a string, and must be a list`},
		{"a name that YAML takes for a boolean", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y #<-\n",
			`metadata.name: is true or false, and must be a string; put it in quotes`},
		{"a value that YAML takes for a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: 1}} #<-\n",
			`ConfigMap default/a metadata.labels: is a number, and must be a string; put it in quotes`},
		{"a hostname that YAML takes for a boolean", route + "  parentRefs: [{name: a, namespace: n}] #<-\n",
			`HTTPRoute default/web spec.parentRefs.namespace: is true or false, and must be a string; put it in quotes`},
		{"a text for an object", route + "  parentRefs: [a] #<-\n", `HTTPRoute default/web spec.parentRefs: is a string, and must be an object`},
		{"key twice", route + "  hostnames: [a]\n  hostnames: [b] #<-\n", `is not YAML: key "hostnames" already set in map`},
		{"not YAML", "a:\n- b\n  c: d #<-\n", `is not YAML: mapping values are not allowed in this context`},
		{"a tab", "a:\n\tb: c #<-\n", `is not YAML: found character that cannot start any token`},
		{"not an object", "- a #<-\n", `is not an object: json: cannot unmarshal array into Go value of type file.header`},
		{"no kind", "apiVersion: v1 #<-\n", `has no kind`},
		{"no version", "kind: Service #<-\n", `has no apiVersion`},
		{"no name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {} #<-\n", `ConfigMap default/ metadata.name: must be set`},
		{"malformed name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a/b #<-\n",
			`ConfigMap default/a/b metadata.name: "a/b" is not a name: use up to 253 lower case letters, digits, hyphens and dots`},
		{"malformed namespace", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: a.b #<-\n",
			`ConfigMap a.b/a metadata.namespace: "a.b" is not a namespace: use up to 63 lower case letters, digits and hyphens`},
		{"namespace of what has none", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  namespace: b #<-\n",
			`Namespace b/a metadata.namespace: a Namespace has no namespace; remove it`},
		{"list in a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1 #<-\n  kind: List\n  items: []\n", `is a list in a list`},
		{"fault in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n  dataa: {} #<-\n",
			`ConfigMap default/b dataa: unknown field`},
		{"second document", "# one\n---\n# two\n---\n" + route + "  rulez: [] #<-\n", `HTTPRoute default/web spec.rulez: unknown field`},
		{"unknown kind", "\n\napiVersion: apps/v1 #<-\nkind: Deployment\nmetadata: {name: a, namespace: b}\n",
			`warning: Deployment b/a of apps/v1 is not a kind that Headgate reads; it is ignored`},
		{"unknown version", "apiVersion: gateway.networking.k8s.io/v1alpha2 #<-\nkind: HTTPRoute\nmetadata: {name: a}\n",
			`warning: HTTPRoute a of gateway.networking.k8s.io/v1alpha2 is not a kind that Headgate reads; it is ignored`},
		{"base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: \"%\"}\n", `Secret default/a: illegal base64 data at input byte 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, line := marked(tt.text)
			s := newSource(t)
			_, problems := s.read("x.yaml", text)
			if len(problems) != 1 {
				t.Fatalf("problems: %v", problems)
			}
			p := problems[0]
			got := p.Message
			if p.Field != "" {
				got = p.Field + ": " + got
			}
			if p.Kind != "" {
				got = p.Object() + " " + got
				if p.Field == "" {
					got = p.Object() + ": " + p.Message
				}
			}
			if p.Severity.String() == "warning" {
				got = "warning: " + got
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if line != 0 && p.Line != line || p.File != "x.yaml" {
				t.Errorf("at %s:%d, want line %d", p.File, p.Line, line)
			}
		})
	}
}

// newSource returns a source without a directory.
func newSource(t *testing.T) *Source {
	t.Helper()
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLineAt(t *testing.T) {
	const text = `# comment
spec:
  rules:
  - name: a
  - name: b
    filters:
    - {type: x}
metadata:
  labels:
    kubernetes.io/service-name: x
  deep: &a
    here: 1
  again: *a
loop: &l [*l]
`
	for path, want := range map[string]int{
		"":                           2,
		"spec":                       2,
		"spec.rules[1]":              5,
		"spec.rules[1].filters[0]":   7,
		"spec.rules.filters":         6, // no index: the first that has it
		"spec.rules[9].name":         3,
		"spec.rules[1].gone.further": 5,
		"nowhere":                    2,
		"metadata.labels.kubernetes.io/service-name": 10,
		"metadata.again.here":                        12,
		"loop.x.y":                                   14,
	} {
		if got := lineAt(text, path) + 1; got != want {
			t.Errorf("lineAt(%q) is line %d, want %d", path, got, want)
		}
	}
	if got := lineAt("\n# a\n\ta: [", "x"); got != 2 {
		t.Errorf("the first line of what is not YAML is %d", got)
	}
}

func TestLongDocument(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	s := newSource(t)
	f, problems := s.read("x.yaml", b.String())
	if len(problems) > 0 || len(f.docs) != 201 {
		t.Errorf("%d documents, problems %v", len(f.docs), problems)
	}
}
