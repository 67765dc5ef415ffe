package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocument(t *testing.T) {
	got, err := document([]byte(`{"properties": {
		"mode": {"description": "How.", "enum": ["a", "b|c"]},
		"group": {"title": "Group", "description": "Some.", "properties": {
			"count": {"description": "How many.", "minimum": 1, "maximum": 9},
			"list": {"description": "Which."}
		}},
		"name": {"description": "Whose."}
	}}`), []byte("name: ''\nmode: a\ngroup: {list: [80, x], count: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(got), "install.md).\n")
	want := "\n| value | default | what it means |\n| --- | --- | --- |\n" +
		"| `mode` | `\"a\"` | How. One of `a`, `b\\|c`. |\n" +
		"| [`group`](#group) | | Some. |\n" +
		"| `name` |  | Whose. |\n" +
		"\n## group\n\nSome.\n\n| value | default | what it means |\n| --- | --- | --- |\n" +
		"| `group.count` | `2` | How many. 1 to 9. |\n" +
		"| `group.list` | `[80,\"x\"]` | Which. |\n"
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentFaults(t *testing.T) {
	for name, c := range map[string]struct{ schema, values, want string }{
		"not described":   {`{"properties": {"a": {}}}`, "a: 1", "does not describe a"},
		"no default":      {`{"properties": {"a": {"title": "A", "description": "A.", "properties": {"b": {"description": "B."}}}}}`, "a: {}", "values.yaml has no a.b"},
		"no schema":       {"", "a: 1", "empty"},
		"no JSON":         {"{", "a: 1", "the schema"},
		"values no YAML":  {"{}", "{", "the values"},
		"values are none": {"{}", "", "empty"},
	} {
		if _, err := document([]byte(c.schema), []byte(c.values)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
	}
}
