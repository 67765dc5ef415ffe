package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	holder := Holder{PID: 4711, Dir: "/tmp/state of mine", Mode: Node, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)}
	if err := first.describe(holder); err != nil {
		t.Fatal(err)
	}
	_, err = acquire(path)
	held := new(HeldError)
	if !errors.As(err, &held) {
		t.Fatalf("second acquire: %v", err)
	}
	for _, part := range []string{"pid 4711", "/tmp/state of mine", "(node)", "since 12:00:00", "down --dir"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q: %v", part, err)
		}
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := acquire(path)
	if err != nil {
		t.Fatalf("after it was given up: %v", err)
	}
	if got := readHolder(path); got.PID != 4711 {
		t.Errorf("the last holder is forgotten: %+v", got)
	}
	if err := second.clear(); err != nil {
		t.Fatal(err)
	}
	if got := readHolder(path); got != (Holder{}) {
		t.Errorf("holder after clear: %+v", got)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
}

// TestLockInherited checks that a program keeps the lock held after the
// process that started it has given it up, and no longer than it lives.
func TestLockInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sleep", "60")
	program.ExtraFiles = []*os.File{l.file}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(path); !errors.As(err, new(*HeldError)) {
		t.Errorf("while the program runs: %v", err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	program.Wait()
	again, err := acquire(path)
	if err != nil {
		t.Fatalf("after the program was killed: %v", err)
	}
	if err := again.close(); err != nil {
		t.Fatal(err)
	}
}

func TestLockIsForEveryUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, want one that lets every user take the lock", info.Mode())
	}
}

func TestHeldErrorWithoutHolder(t *testing.T) {
	if got := (&HeldError{}).Error(); !strings.Contains(got, machineLock) {
		t.Errorf("message %q does not say where to look", got)
	}
}

func TestHeldErrorOfEndedHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		pid   int
		ended bool
	}{{os.Getpid(), false}, {ended.Process.Pid, true}} {
		if err := l.describe(Holder{PID: tc.pid, Dir: "/state", Mode: ControlPlane}); err != nil {
			t.Fatal(err)
		}
		_, err := acquire(path)
		if got := strings.Contains(err.Error(), "which has ended, but what it started runs on"); got != tc.ended {
			t.Errorf("pid %d: %v", tc.pid, err)
		}
	}
}
