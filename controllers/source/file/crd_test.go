package file

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// schema is what this test needs of a CRD's schema: an oracle for the defaults
// and the checks that are written by hand here.
type schema struct {
	Type                 string             `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Default              json.RawMessage    `json:"default"`
	Required             []string           `json:"required"`
	Enum                 []any              `json:"enum"`
	Pattern              string             `json:"pattern"`
	MinLength            *int               `json:"minLength"`
	MaxLength            *int               `json:"maxLength"`
	MinItems             *int               `json:"minItems"`
	MaxItems             *int               `json:"maxItems"`
	MaxProperties        *int               `json:"maxProperties"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	MapKeys              []string           `json:"x-kubernetes-list-map-keys"`

	re *regexp.Regexp // of Pattern
}

// crds reads our schemas and those of the standard channel from the module, by
// kind and version.
func crds(t *testing.T) map[string]*schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	files, err := filepath.Glob("../../../config/crd/headgate.dev_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("our CRDs: %d files, %v", len(files), err)
	}
	for _, name := range []string{"gatewayclasses", "gateways", "httproutes", "referencegrants"} {
		files = append(files, filepath.Join(strings.TrimSpace(string(dir)), "config/crd/standard/gateway.networking.k8s.io_"+name+".yaml"))
	}
	out := make(map[string]*schema)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema *schema `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			s := v.Schema.OpenAPIV3Schema
			delete(s.Properties, "status")
			out[crd.Spec.Names.Kind+" "+v.Name] = s
		}
	}
	return out
}

// fill adds the defaults, as the API server does.
func (s *schema) fill(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			if v[name] == nil {
				delete(v, name) // as the API server treats null where it is not allowed
			}
			if _, ok := v[name]; !ok && p.Default != nil {
				var d any
				if err := json.Unmarshal(p.Default, &d); err != nil {
					panic(err)
				}
				v[name] = d
			}
			if child, ok := v[name]; ok {
				v[name] = p.fill(child)
			}
		}
	case []any:
		for i := range v {
			v[i] = s.Items.fill(v[i])
		}
	}
	return v
}

// faults lists where a value is not as the schema asks, the rules in CEL apart.
func (s *schema) faults(v any, path string) (out []string) {
	bad := func(format string, args ...any) { out = append(out, path+": "+fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		bad("not in the enum")
	}
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		if s.MinLength != nil && n < *s.MinLength || s.MaxLength != nil && n > *s.MaxLength {
			bad("length")
		}
		if s.Pattern != "" && s.re == nil {
			s.re = regexp.MustCompile(s.Pattern)
		}
		if s.re != nil && !s.re.MatchString(v) {
			bad("pattern")
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			bad("range")
		}
	case []any:
		if s.MinItems != nil && len(v) < *s.MinItems || s.MaxItems != nil && len(v) > *s.MaxItems {
			bad("items")
		}
		seen := make(map[string]bool)
		for i, e := range v {
			out = append(out, s.Items.faults(e, fmt.Sprintf("%s[%d]", path, i))...)
			key := ""
			if m, ok := e.(map[string]any); ok {
				for _, k := range s.MapKeys {
					key += fmt.Sprint(m[k], " ")
				}
			}
			if key != "" && seen[key] {
				bad("key twice")
			}
			seen[key] = true
		}
	case map[string]any:
		for _, name := range s.Required {
			// A typed object can't tell a group that is missing from the core group, nor
			// an empty default from none: they are taken as such.
			if _, ok := v[name]; !ok && name != "group" && name != "default" {
				bad("%s is missing", name)
			}
		}
		if s.MaxProperties != nil && len(v) > *s.MaxProperties {
			bad("properties")
		}
		for name, child := range v {
			if p := s.Properties[name]; p != nil {
				out = append(out, p.faults(child, path+"."+name)...)
			} else if s.AdditionalProperties != nil {
				out = append(out, s.AdditionalProperties.faults(child, path+"."+name)...)
			}
		}
	}
	return out
}

// corpus are the texts of documents that the golden cases of compile and the
// samples have.
func corpus(t testing.TB) []string {
	t.Helper()
	var docs []string
	for _, pattern := range []string{"../../compile/testdata/*/in.yaml", "../../../config/samples/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range split(string(text)) {
				if !blank(p.text) {
					docs = append(docs, p.text)
				}
			}
		}
	}
	return docs
}

// TestAgainstCRDs checks that defaults and checks are those of the CRDs: that an
// object is filled in as an API server does it, and that what the schema refuses is
// refused here. (What is refused here and not by the schema is refused by its rules
// in CEL, which this test can't run.)
func TestAgainstCRDs(t *testing.T) {
	schemas := crds(t)
	filled, refused := 0, 0
	indexes := regexp.MustCompile(`\[\d+\]`)
	told, seen, lines := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, text := range corpus(t) {
		for _, text := range append(mutations(text, lines), text) {
			if seen[text] {
				continue
			}
			seen[text] = true
			var raw map[string]any
			if yaml.Unmarshal([]byte(text), &raw) != nil {
				continue
			}
			version, kindName := fmt.Sprint(raw["apiVersion"]), fmt.Sprint(raw["kind"])
			s := schemas[kindName+" "+version[strings.LastIndexByte(version, '/')+1:]]
			if s == nil {
				continue
			}
			d := read(text, false)
			if len(d.objects) != 1 || len(d.faults) > 0 {
				continue // not even decoded, or of the experimental channel
			}
			want := s.fill(raw)
			if faults := s.faults(want, ""); len(faults) > 0 {
				kind := indexes.ReplaceAllString(kindName+fmt.Sprint(faults), "")
				if !read(text, true).broken() && !told[kind] {
					told[kind] = true
					t.Errorf("the CRD refuses it for %v:\n%s", faults, text)
				}
				refused++
				continue
			}
			k := d.objects[0].kind
			typed := k.new()
			again, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, typed); err != nil {
				t.Fatal(err)
			}
			(&object{kind: k, meta: typed}).identify()
			if diff := cmp.Diff(typed, d.objects[0].meta); diff != "" {
				t.Errorf("defaults of (-CRD +file):\n%s\n%s", text, diff)
			}
			filled++
		}
	}
	if filled < 300 || refused < 100 {
		t.Errorf("only %d documents were filled in, and %d refused", filled, refused)
	}
}

// mutations spoils a document line by line: values become other values, and
// lines are left out. A line that was spoilt in another document is left alone.
func mutations(text string, done map[string]bool) (out []string) {
	lines := strings.Split(text, "\n")
	value := regexp.MustCompile(`^(\s*(?:- )?\w+: )(.+)$`)
	for i, l := range lines {
		m := value.FindStringSubmatch(l)
		if m == nil || done[l] || strings.HasPrefix(l, "apiVersion") || strings.HasPrefix(l, "kind") {
			continue
		}
		done[l] = true
		for _, v := range []string{`""`, `"A B"`, `0`, `-1`, `70000`, `[]`, `{}`, `"` + strings.Repeat("a", 300) + `"`} {
			spoilt := slices.Clone(lines)
			spoilt[i] = m[1] + v
			out = append(out, strings.Join(spoilt, "\n"))
		}
		out = append(out, strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"))
	}
	return out
}
