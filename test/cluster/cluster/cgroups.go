package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// errNoCgroupV1 tells that the machine can't run a node.
var errNoCgroupV1 = errors.New("this machine has no cgroup v1 hierarchy for memory: a node was made for machines that do (see DESIGN.md)")

// hierarchies returns the mount points of the machine's cgroup hierarchies.
func hierarchies(mounts []mount) []string {
	var points []string
	seen := make(map[string]bool)
	for _, m := range mounts {
		if (m.fsType == "cgroup" || m.fsType == "cgroup2") && !seen[m.point] {
			seen[m.point] = true
			points = append(points, m.point)
		}
	}
	return points
}

// makeCgroups makes the cgroup below which all pods are, in every hierarchy.
// The kubelet makes none above its own.
func makeCgroups() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	memory := false
	for _, hierarchy := range hierarchies(mounts) {
		dir := filepath.Join(hierarchy, cgroupName)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make a cgroup: %w", err)
		}
		// In v1 a new cpuset is empty, and nothing can run in it.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(hierarchy, name))
			if isAbsent(err) {
				continue // another hierarchy
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), value, 0)
			}
			if err != nil {
				return fmt.Errorf("give the cgroup its %s: %w", name, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "memory.limit_in_bytes")); err == nil {
			memory = true
		}
	}
	if !memory {
		return errors.Join(errNoCgroupV1, removeCgroups(0))
	}
	return nil
}

// removeCgroups removes the cgroups of pods. Those of processes that have just
// ended can be busy for a moment: it tries again until timeout.
func removeCgroups(timeout time.Duration) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		var errs []error
		for _, hierarchy := range hierarchies(mounts) {
			errs = append(errs, removeCgroup(filepath.Join(hierarchy, cgroupName)))
		}
		err := errors.Join(errs...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// removeCgroup removes a cgroup and those below it. The files in it go by
// themselves.
func removeCgroup(dir string) error {
	var below []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if isAbsent(err) || errors.Is(err, syscall.ENODEV) { // it has just gone
				return nil
			}
			return err
		}
		if d.IsDir() {
			below = append(below, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list a cgroup: %w", err)
	}
	for i := len(below) - 1; i >= 0; i-- {
		if err := syscall.Rmdir(below[i]); err != nil && !isAbsent(err) {
			return fmt.Errorf("remove cgroup %s: %w", below[i], err)
		}
	}
	return nil
}
