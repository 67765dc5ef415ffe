package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

func TestEndProcesses(t *testing.T) {
	l := layout{dir: filepath.Join(t.TempDir(), "state")}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	_, recorded := newSleeper(t)
	_, unrecorded := newSleeper(t, marker+"="+l.dir)
	_, other := newSleeper(t)

	if err := endProcesses(l, &state{Boot: "another boot", Processes: []process{other}}); err != nil {
		t.Fatal(err)
	}
	if unrecorded.alive() {
		t.Error("a marked process is left")
	}
	if !other.alive() {
		t.Error("a process was killed by a pid of another boot")
	}
	if err := endProcesses(l, &state{Boot: boot, Processes: []process{recorded}}); err != nil {
		t.Fatal(err)
	}
	if recorded.alive() {
		t.Error("a recorded process is left")
	}
}
