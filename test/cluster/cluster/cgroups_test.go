package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestRemoveCgroup(t *testing.T) {
	// A directory without files behaves as a cgroup without processes.
	dir := filepath.Join(t.TempDir(), "pods")
	if err := os.MkdirAll(filepath.Join(dir, "besteffort", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeCgroup(dir); err != nil {
			t.Fatal(err)
		}
	}
	if exists(dir) {
		t.Error("it is left")
	}
	busy := filepath.Join(t.TempDir(), "busy")
	if err := errors.Join(os.Mkdir(busy, 0o755), os.WriteFile(filepath.Join(busy, "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroup(busy); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("a busy one: %v", err)
	}
}
