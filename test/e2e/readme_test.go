package e2e

import (
	"reflect"
	"strings"
	"testing"
)

func TestQuickStart(t *testing.T) {
	const text = "```\nnot this\n```\n<!-- quickstart a: first -->\n```sh\none\n# two\n```\n<!-- quickstart b: first -->\n```\nno\n```\n" +
		"<!-- quickstart a: second -->\n\nwords\n```\nthree\n```\n"
	blocks, err := quickStart(strings.NewReader(text), "a")
	want := map[string]string{"first": "one\n# two\n", "second": "three\n"}
	if err != nil || !reflect.DeepEqual(blocks, want) {
		t.Errorf("got %q, %v; want %q", blocks, err, want)
	}
	for name, bad := range map[string]string{
		"none":         "words",
		"twice":        text + "<!-- quickstart a: first -->\n```\n```\n",
		"no block":     "<!-- quickstart a: first -->\n<!-- quickstart a: second -->\n```\n```\n",
		"no end":       "<!-- quickstart a: first -->\n```\none\n",
		"another name": "<!-- quickstart b: first -->\n```\n```\n",
	} {
		if got, err := quickStart(strings.NewReader(bad), "a"); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}
