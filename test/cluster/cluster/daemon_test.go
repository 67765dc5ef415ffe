package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newCluster returns a cluster of a control plane that runs nothing yet.
func newCluster(t *testing.T) *Cluster {
	t.Helper()
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{layout: layout{dir: filepath.Join(t.TempDir(), "state")}, state: &state{Mode: ControlPlane, Boot: boot, Binaries: "/cache"}}
	if err := errors.Join(os.Mkdir(c.layout.dir, 0o700), os.Mkdir(c.layout.log(), 0o700), os.Mkdir(c.layout.run(), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := endProcesses(c.layout, c.state); err != nil {
			t.Error(err)
		}
	})
	return c
}

func shell(name, script string) program {
	return program{name: name, args: []string{"/bin/sh", "-c", script}}
}

func TestLaunch(t *testing.T) {
	c := newCluster(t)
	d, err := c.launch(shell("etcd", `echo "$`+marker+`"; touch run/ready; exec sleep 60`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := func(context.Context) error {
		_, err := os.Stat(c.layout.run("ready"))
		return err
	}
	if err := d.await(t.Context(), "etcd", ready); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(c.layout.log("etcd.log")); string(content) != c.layout.dir+"\n" {
		t.Errorf("log %q, %v; want the state directory", content, err)
	}
	opened, err := Open(c.layout.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []ProcessStatus{{Name: "etcd", PID: d.process.PID, Alive: true}}
	if diff := cmp.Diff(want, opened.Processes()); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if got := opened.Bin(); got != "/cache/bin" {
		t.Errorf("programs in %s", got)
	}
}

func TestAwaitEnd(t *testing.T) {
	c := newCluster(t)
	d, err := c.launch(shell("etcd", "echo no such flag; exit 1"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = d.await(t.Context(), "etcd", func(context.Context) error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "etcd ended before etcd was ready") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v does not say that it ended, or why", err)
	}
}

func TestAwaitTime(t *testing.T) {
	c := newCluster(t)
	d, err := c.launch(shell("etcd", "echo thinking; exec sleep 60"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	never := func(context.Context) error { return errors.New("connection refused") }
	over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-over.Done()
	if err := d.await(over, "etcd", never); err == nil || !strings.Contains(err.Error(), "time is over: connection refused") {
		t.Errorf("after the time is over: %v", err)
	}
	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("interrupt signal received"))
	if err := d.await(interrupted, "etcd", never); err == nil || err.Error() != "interrupt signal received before etcd was ready" {
		t.Errorf("after an interrupt: %v", err)
	}
}

func TestTailIsShort(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(log, []byte("first\n"+strings.Repeat("line\n", 10_000)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tail := (&daemon{log: log}).tail()
	if len(tail) > logTail+200 || !strings.HasSuffix(tail, "line\nlast") || strings.Contains(tail, "first") {
		t.Errorf("tail of %d bytes: %.100s", len(tail), tail)
	}
}
