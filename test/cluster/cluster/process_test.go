package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newSleeper starts a process that would run for a minute. It is reaped only
// when the test asks for it or ends.
func newSleeper(t *testing.T, environment ...string) (*exec.Cmd, process) {
	t.Helper()
	command := exec.Command("sleep", "60")
	command.Env = environment
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	p, err := identify("sleeper", command.Process.Pid, command.Args)
	if err != nil {
		t.Fatal(err)
	}
	return command, p
}

func TestKill(t *testing.T) {
	command, p := newSleeper(t)
	if !p.alive() {
		t.Fatal("it is not alive")
	}
	// It becomes a zombie: nobody waits for it yet.
	if err := killAll([]process{p}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("a zombie is taken for alive")
	}
	command.Wait()
	if p.alive() {
		t.Error("it is alive after it was reaped")
	}
	if err := p.kill(); err != nil {
		t.Errorf("killing it again: %v", err)
	}
}

// TestKillSparesAnother checks that a pid that has become another process's
// is left alone.
func TestKillSparesAnother(t *testing.T) {
	_, p := newSleeper(t)
	earlier := p
	earlier.Start--
	if earlier.alive() {
		t.Error("a process of another start time is taken for alive")
	}
	if err := killAll([]process{earlier}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if !p.alive() {
		t.Error("another process was killed for it")
	}
}

func TestKillAllTellsWhoStays(t *testing.T) {
	// This process can't be killed by the test; a time-out of zero is over at once.
	self, err := identify("test", os.Getpid(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stays := []process{self}
	if !stays[0].alive() {
		t.Fatal("this process is not alive")
	}
	err = awaitEnd(stays, 0)
	if err == nil || !strings.Contains(err.Error(), "test (pid ") {
		t.Errorf("error %v does not name the process", err)
	}
}

func TestMarked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, ours := newSleeper(t, "A=b", marker+"="+dir)
	newSleeper(t, marker+"="+dir+"-other")
	newSleeper(t, "X"+marker+"="+dir)
	found, err := marked(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].PID != ours.PID || found[0].Start != ours.Start || found[0].Name != "sleep" {
		t.Errorf("marked processes %+v, want %+v only", found, ours)
	}
}

func TestParseStat(t *testing.T) {
	const tail = " 1 10 10 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 2"
	for _, tc := range []struct {
		name   string
		stat   string
		start  uint64
		status byte
		valid  bool
	}{
		{"plain", "10 (sleep) S" + tail, 98765, 'S', true},
		{"zombie", "10 (sleep) Z" + tail, 98765, 'Z', true},
		{"spaces in the name", "10 (tmux: server) S" + tail, 98765, 'S', true},
		{"a name like the rest", "10 (a) R 1 (b) S" + tail, 98765, 'S', true},
		{"short", "10 (sleep) S 1 10", 0, 0, false},
		{"no name", "10 sleep S" + tail, 0, 0, false},
		{"no number", "10 (sleep) S" + strings.Replace(tail, "98765", "x", 1), 0, 0, false},
		{"empty", "", 0, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start, status, err := parseStat([]byte(tc.stat))
			if (err == nil) != tc.valid {
				t.Fatalf("error %v, want valid = %v", err, tc.valid)
			}
			if tc.valid && (start != tc.start || status != tc.status) {
				t.Errorf("got %d %c, want %d %c", start, status, tc.start, tc.status)
			}
		})
	}
}
