package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// layout names the files of a state directory:
//
//	cluster.json    what runs; gone when nothing does
//	operation.lock  held by the command that is at work on the directory
//	kubeconfig      the administrator's
//	log/            a log of each program, and audit.log; kept until the next up
//	run/            certificates, configuration, data; gone when nothing runs
type layout struct {
	dir string // absolute
}

// newLayout returns the layout of dir, which need not exist.
func newLayout(dir string) (layout, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("state directory %s: %w", dir, err)
	}
	// By one name only: the directory's name is what marks its processes.
	if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
		absolute = resolved
	}
	return layout{dir: absolute}, nil
}

// DefaultDir returns the state directory unless another is asked for. It is
// short, since the names of sockets in it are limited to 107 bytes.
func DefaultDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("headgate-test-cluster-%d", os.Getuid()))
}

func (l layout) state() string { return filepath.Join(l.dir, "cluster.json") }

func (l layout) operationLock() string { return filepath.Join(l.dir, "operation.lock") }

func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

func (l layout) log(parts ...string) string {
	return filepath.Join(append([]string{l.dir, "log"}, parts...)...)
}

func (l layout) run(parts ...string) string {
	return filepath.Join(append([]string{l.dir, "run"}, parts...)...)
}

func (l layout) certificate(name string) string { return l.run("certificates", name+".crt") }

func (l layout) key(name string) string { return l.run("certificates", name+".key") }

func (l layout) kubeconfigOf(user string) string { return l.run("certificates", user+".kubeconfig") }

// prepare makes the state directory, or checks that it is one of ours or
// empty: what is in it will be removed.
func (l layout) prepare() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	info, err := os.Lstat(l.dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	// Its keys are those of the cluster, and the default is in a directory of everyone's.
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state directory %s belongs to another user, or others may write to it", l.dir)
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "cluster.json", "cluster.json.unfinished", "operation.lock", "kubeconfig", "log", "run":
		default:
			return fmt.Errorf("state directory %s has %s in it, which is no part of a test cluster: give an empty directory", l.dir, e.Name())
		}
	}
	return nil
}
