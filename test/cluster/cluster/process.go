package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// marker is the environment variable whose value, the state directory, marks
// the processes of a cluster. It finds those that a crash kept out of the state.
const marker = "HEADGATE_TEST_CLUSTER"

// process is a process as it is remembered: a pid alone may have become
// another process's, a pid with its start time can't within one boot.
type process struct {
	Name  string   `json:"name"`
	PID   int      `json:"pid"`
	Start uint64   `json:"start"` // in the kernel's ticks since boot
	Args  []string `json:"args,omitempty"`
}

// identify returns the running process of that pid.
func identify(name string, pid int, args []string) (process, error) {
	start, _, err := readStat(pid)
	if err != nil {
		return process{}, fmt.Errorf("identify %s: %w", name, err)
	}
	return process{Name: name, PID: pid, Start: start, Args: args}, nil
}

// alive reports whether the process still runs. One that has ended but that
// its parent has not yet noticed does not.
func (p process) alive() bool {
	start, status, err := readStat(p.PID)
	if err != nil || start != p.Start {
		return false
	}
	switch status {
	case 'X':
		return false
	case 'Z':
		// That is its first thread. While others are left it still has files
		// open, and pid 1 of the node may still be ending what is in it.
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
		return err == nil && len(threads) > 1
	}
	return true
}

// kill ends the process at once. It is no error if it has ended before.
func (p process) kill() error {
	handle, err := os.FindProcess(p.PID) // a pidfd: it stays with this process, or with none
	if err != nil {
		return nil
	}
	defer handle.Release()
	// Only now, with the handle at hand, is it sure whose pid it is.
	if !p.alive() {
		return nil
	}
	if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// killAll ends the processes and waits until all have ended.
func killAll(processes []process, timeout time.Duration) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.kill())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return awaitEnd(processes, timeout)
}

// awaitEnd waits until all of the processes, which were killed, have ended.
func awaitEnd(processes []process, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for _, p := range processes {
			if p.alive() {
				left = append(left, fmt.Sprintf("%s (pid %d)", p.Name, p.PID))
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still running %s after they were killed: %s", timeout, strings.Join(left, ", "))
		}
	}
}

// marked returns the processes that carry the marker of the state directory
// dir, as far as this user may see them.
func marked(dir string) ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, fmt.Errorf("look for processes: %w", err)
	}
	want := []byte(marker + "=" + dir)
	var found []process
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or is another user's
		}
		for variable := range bytes.SplitSeq(content, []byte{0}) {
			if !bytes.Equal(variable, want) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil || pid == os.Getpid() {
				break
			}
			if p, err := identify(commandName(pid), pid, nil); err == nil {
				found = append(found, p)
			}
			break
		}
	}
	return found, nil
}

// commandName returns the name of a process, for messages.
func commandName(pid int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(content))
}

// readStat returns when a process started, in ticks since boot, and its status
// letter.
func readStat(pid int) (start uint64, status byte, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseStat(content)
}

// parseStat parses /proc/PID/stat. The command's name, the second field, may
// have spaces and parentheses in it.
func parseStat(content []byte) (start uint64, status byte, err error) {
	const startField = 22 // counted from 1, as proc(5) does
	end := bytes.LastIndexByte(content, ')')
	fields := strings.Fields(string(content[end+1:])) // from the third field on
	if end < 0 || len(fields) <= startField-3 {
		return 0, 0, fmt.Errorf("malformed stat %q", content)
	}
	start, err = strconv.ParseUint(fields[startField-3], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("malformed start time: %w", err)
	}
	return start, fields[0][0], nil
}
