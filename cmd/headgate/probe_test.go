package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/headgate/headgate/dataplane/admin"
	"github.com/headgate/headgate/dataplane/ir"
)

// standIn is a data plane that is ready or not.
type standIn struct{ fault atomic.Pointer[error] }

func (s *standIn) Ready() error {
	if p := s.fault.Load(); p != nil {
		return *p
	}
	return nil
}
func (*standIn) Snapshot() *ir.Snapshot { return nil }
func (*standIn) Loops() []admin.Loop    { return nil }

func TestProbe(t *testing.T) {
	var plane standIn
	pages, err := admin.New(admin.Options{DataPlane: &plane, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	a := &adminServer{server: pages, log: zaptest.NewLogger(t)}
	path := filepath.Join(t.TempDir(), "a")
	if err := a.listen("", path, nil); err != nil {
		t.Fatal(err)
	}
	defer a.close(t.Context())
	run := func(args ...string) error {
		cmd := rootCmd()
		cmd.SetOut(new(bytes.Buffer))
		cmd.SetErr(new(bytes.Buffer))
		cmd.SetArgs(args)
		return cmd.ExecuteContext(t.Context())
	}
	wrong := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	if err := errors.Join(run("probe", "ready", "--socket", path), run("probe", "live", "--socket", path)); err != nil {
		t.Error(err)
	}
	fault := errors.New("the cat sleeps on it")
	plane.fault.Store(&fault)
	wrong(run("probe", "ready", "--socket", path), "not ready: the cat sleeps on it")
	if err := run("probe", "live", "--socket", path); err != nil {
		t.Error(err)
	}
	wrong(run("probe", "ready", "--socket", path+"x"), "no answer on "+path+"x")
	wrong(run("probe", "ready"), "--socket")
	wrong(run("probe", "happy", "--socket", path), "happy")
	wrong(run("handover", "prepare", "--dir", t.TempDir(), "--owner", "nobody"), "--owner")
	wrong(run("handover", "prepare", "--owner", "1:1"), "--dir")
	wrong(run("handover", "prepare", "--dir", path, "--owner", "1:1"), "not a directory")
	wrong(run("serve", t.TempDir(), "--handover-dir", path+"x", "--admin-address", ""), "headgate handover prepare")
}
