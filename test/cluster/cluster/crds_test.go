package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindCRDs(t *testing.T) {
	dir := t.TempDir()
	if isKustomization(dir) {
		t.Error("an empty directory is taken for a kustomization")
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !isKustomization(dir) {
		t.Error("a kustomization is not seen")
	}
	if got, err := findCRDs(t.Context(), dir); got != dir || err != nil {
		t.Errorf("a directory: %q, %v", got, err)
	}
	if _, err := findCRDs(t.Context(), filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "gateway-api-experimental") {
		t.Errorf("a missing one: %v, which does not say what there is", err)
	}
}
