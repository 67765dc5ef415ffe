package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	if _, err := readState(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before it is written: %v", err)
	}
	want := &state{
		Mode: Node, Boot: "b", Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Binaries: "/cache", Made: []string{"/run/netns"},
	}
	want.set(process{Name: "etcd", PID: 10, Start: 100})
	want.set(process{Name: "kube-apiserver", PID: 11, Start: 101, Args: []string{"/cache/bin/kube-apiserver", "--v=1"}})
	want.set(process{Name: "etcd", PID: 12, Start: 102})
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readState(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if p, ok := got.find("etcd"); !ok || p.PID != 12 || len(got.Processes) != 2 {
		t.Errorf("the second etcd did not take the first one's place: %+v", got.Processes)
	}
	if _, ok := got.find("kubelet"); ok {
		t.Error("a kubelet was found that never was")
	}
}
