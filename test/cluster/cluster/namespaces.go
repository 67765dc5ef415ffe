package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceFlags are the kinds of namespaces that the node has of its own.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// namespaces are the node's namespaces, kept by the process that is pid 1 in
// them: when it is killed, the kernel kills everything inside.
type namespaces struct {
	pid int // of pid 1, as the machine counts
}

// do runs f on a thread that is inside the namespaces. What f starts is
// inside, too; pids that it sees are the machine's.
func (n namespaces) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err := n.enter(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// enter puts the calling thread into the namespaces, for good.
func (n namespaces) enter() (err error) {
	// All are opened first: once one is entered, /proc may be another.
	kinds := []struct {
		name string
		flag int
	}{
		{"net", unix.CLONE_NEWNET},
		{"uts", unix.CLONE_NEWUTS},
		{"ipc", unix.CLONE_NEWIPC},
		{"pid", unix.CLONE_NEWPID}, // of the children only
		{"mnt", unix.CLONE_NEWNS},
	}
	files := make([]*os.File, len(kinds))
	for i, kind := range kinds {
		if files[i], err = os.Open(fmt.Sprintf("/proc/%d/ns/%s", n.pid, kind.name)); err != nil {
			return fmt.Errorf("enter the node: %w", err)
		}
		defer func() { err = errors.Join(err, files[i].Close()) }()
	}
	// A thread that shares its root and working directory with others can't
	// change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter the node: unshare: %w", err)
	}
	for i, kind := range kinds {
		if err := unix.Setns(int(files[i].Fd()), kind.flag); err != nil {
			return fmt.Errorf("enter the node's %s namespace: %w", kind.name, err)
		}
	}
	return nil
}

// start starts a command inside the namespaces. Its process is this process's
// child, and its pid is the machine's.
func (n namespaces) start(command *exec.Cmd) error {
	return n.do(command.Start)
}

// run runs a command inside the namespaces and waits for it.
func (n namespaces) run(command *exec.Cmd) error {
	if err := n.start(command); err != nil {
		return err
	}
	return command.Wait()
}

// newNamespaces returns the attributes of a process that is to be pid 1 of new
// namespaces.
func newNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaceFlags}
}

// combined runs a command inside the namespaces and returns what it says,
// without the white space around it.
func (n namespaces) combined(command *exec.Cmd) (string, error) {
	var out strings.Builder
	command.Stdout = &out
	command.Stderr = &out
	err := n.run(command)
	return strings.TrimSpace(out.String()), err
}

// dial connects as a process on the node would.
func (n namespaces) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var connection net.Conn
	err := n.do(func() (err error) {
		connection, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}
