package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

func TestPrepare(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string) error
		err  string
	}{
		{"absent", func(*testing.T, string) error { return nil }, ""},
		{"used before", func(_ *testing.T, dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, "log"), 0o700), os.WriteFile(filepath.Join(dir, "operation.lock"), nil, 0o600))
		}, ""},
		{"a user's files", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
		}, "thesis.tex"},
		{"others may write", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777))
		}, "others may write"},
		{"a file", func(_ *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := tc.make(t, dir); err != nil {
				t.Fatal(err)
			}
			l, err := newLayout(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = l.prepare()
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if info, err := os.Stat(dir); tc.err == "" && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("directory: %v, %v", info, err)
			}
		})
	}
}

func TestLayoutHasOneName(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	direct, err := newLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	through, err := newLayout(link)
	if err != nil {
		t.Fatal(err)
	}
	if direct != through {
		t.Errorf("%v through a link, %v without", through, direct)
	}
}

func TestRemoveFilesKeepsLogs(t *testing.T) {
	l := layout{dir: t.TempDir()}
	for _, path := range []string{l.log("etcd.log"), l.run("etcd", "member", "snap"), l.certificate("ca"), l.kubeconfig(), l.state(), l.operationLock()} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left to do
		if err := removeFiles(l); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"log", "operation.lock"}, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	if !exists(l.log("etcd.log")) {
		t.Error("the logs are gone")
	}
}

func TestRemovePlaces(t *testing.T) {
	top := filepath.Join(t.TempDir(), "lib")
	places := []string{top, filepath.Join(top, "cni"), filepath.Join(top, "kubelet")}
	if err := makePlaces(places); err != nil {
		t.Fatal(err)
	}
	if err := makePlaces(places); err != nil {
		t.Errorf("a second time: %v", err)
	}
	someone := filepath.Join(places[2], "someone's")
	if err := os.WriteFile(someone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removePlaces(places); err != nil {
		t.Fatal(err)
	}
	if exists(places[1]) {
		t.Error("an empty one is left")
	}
	if !exists(someone) {
		t.Error("one that has become someone's was removed")
	}
	if err := os.Remove(someone); err != nil {
		t.Fatal(err)
	}
	if err := removePlaces(places); err != nil {
		t.Fatal(err)
	}
	if exists(top) {
		t.Error("the parent is left")
	}
}

func TestParseMounts(t *testing.T) {
	const info = `24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 24 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
31 24 0:27 / /sys/fs/cgroup/my\040own rw,relatime master:2 shared:3 - cgroup2 cgroup2 rw
32 24 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
`
	mounts, err := parseMounts(info)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/my own"}
	if diff := cmp.Diff(want, hierarchies(mounts)); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
	if _, err := parseMounts("24 1 254:0 / /\n"); err == nil {
		t.Error("a line without a type is taken")
	}
	self, err := readMounts()
	if err != nil || len(self) == 0 {
		t.Errorf("this thread's mounts: %v, %v", self, err)
	}
}

func TestMountsBelow(t *testing.T) {
	for _, tc := range []struct {
		dir   string
		found bool
	}{{"/proc", true}, {"/pro", false}, {t.TempDir(), false}} {
		below, err := mountsBelow(tc.dir)
		if err != nil {
			t.Fatal(err)
		}
		if (len(below) > 0) != tc.found {
			t.Errorf("below %s: %q", tc.dir, below)
		}
	}
}

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
