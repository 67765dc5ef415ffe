package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoNode(t *testing.T) {
	c := newCluster(t)
	if _, err := c.Addresses(); !errors.Is(err, ErrNoNode) {
		t.Errorf("addresses: %v", err)
	}
	if err := c.LoadImage(t.Context(), strings.NewReader(""), nil); !errors.Is(err, ErrNoNode) {
		t.Errorf("images: %v", err)
	}
	c.state.set(process{Name: namePause, PID: os.Getpid(), Start: 1})
	if _, err := c.Addresses(); !errors.Is(err, ErrNotUp) {
		t.Errorf("addresses of a node that was ended: %v", err)
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotUp) {
		t.Errorf("an empty directory: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || errors.Is(err, ErrNotUp) {
		t.Errorf("a damaged state: %v", err)
	}
}
