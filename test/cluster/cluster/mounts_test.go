package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
