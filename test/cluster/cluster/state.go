package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// state is what a state directory remembers of a cluster. It is written before
// each thing that it describes is made, so that a crash leaves nothing behind
// that down does not know of.
type state struct {
	Mode      Mode      `json:"mode"`
	Boot      string    `json:"boot"` // the kernel's boot id: pids of another boot mean nothing
	Since     time.Time `json:"since"`
	Binaries  string    `json:"binaries"`
	Processes []process `json:"processes"`
	// Made are directories outside the state directory that were made as places
	// to mount on; down removes those that are empty.
	Made []string `json:"made,omitempty"`
}

// readState returns the state in path, and [os.ErrNotExist] if there is none.
func readState(path string) (*state, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("read the state %s: %w", path, err)
	}
	return &s, nil
}

// write replaces the state in path, at once.
func (s *state) write(path string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// set records a process in place of an earlier one of its name.
func (s *state) set(p process) {
	for i := range s.Processes {
		if s.Processes[i].Name == p.Name {
			s.Processes[i] = p
			return
		}
	}
	s.Processes = append(s.Processes, p)
}

// find returns the process that is called name, and whether there is one.
func (s *state) find(name string) (process, bool) {
	for _, p := range s.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return process{}, false
}

// bootID returns the id that the kernel gave this boot.
func bootID() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// isAbsent reports whether err says that a file is not there.
func isAbsent(err error) bool { return errors.Is(err, os.ErrNotExist) }
