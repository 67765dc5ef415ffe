package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What differs is found, and written; what has no source any more goes.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(want string) {
		t.Helper()
		if err := run(true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
	fails("run this in the repository's directory")
	put("config/crd/headgate.dev_things.yaml", "crd")
	put("config/rbac/role.yaml", "kind: Role\nrules:\n- {}\n")
	put("config/rbac/namespace.yaml", "kind: Namespace\n")
	put("charts/headgate/values.schema.json", `{"properties": {"a": {"description": "A."}}}`)
	put("charts/headgate/values.yaml", "a: 1")
	fails("charts/headgate/files/crds/headgate.dev_things.yaml is not as generated")
	if _, err := os.Stat("docs"); err == nil {
		t.Error("a check writes")
	}
	put("docs/values.md", "old")
	if err := run(false); err != nil {
		t.Fatal(err)
	}
	if err := run(true); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile("charts/headgate/files/rbac/role.yaml"); err != nil || !strings.Contains(string(text), "kind: Role") {
		t.Errorf("the role: %q %v", text, err)
	}
	if _, err := os.Stat("charts/headgate/files/rbac/namespace.yaml"); err == nil {
		t.Error("a namespace is copied")
	}
	put("config/rbac/role.yaml", "kind: Role\nrules:\n- {verbs: [get]}\n")
	fails("rbac/role.yaml is not as generated")
	put("config/rbac/role.yaml", "kind: Role\nrules:\n- {}\n")
	put("charts/headgate/files/rbac/gone.yaml", "x")
	fails("gone.yaml is a copy of nothing")
	if err := run(false); err != nil {
		t.Fatal(err)
	}
	if err := run(true); err != nil {
		t.Error(err)
	}
}
