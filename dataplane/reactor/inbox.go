//go:build linux

package reactor

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// inbox is what other threads have for a loop: connections to take over and
// functions to run. It wakes the loop by an eventfd, once per batch. The
// poller's own task queue is not used: it runs tasks until the queue is empty,
// so a task that posts itself again would starve all I/O.
type inbox struct {
	fd int // eventfd, registered edge-triggered so that nobody reads it

	mu       sync.Mutex
	awake    bool // the loop has been woken and has not yet looked
	stop     bool // the loop shall end
	closed   bool // the loop has ended; fd is closed
	tasks    []func()
	accepted []accepted
}

// accepted is a connection on its way from a listening socket to its loop.
type accepted struct {
	fd       int
	remote   netip.AddrPort
	listener *Listener
}

// keepCap is the capacity above which a drained batch's memory is not kept.
const keepCap = 1024

func newInbox() (*inbox, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &inbox{fd: fd}, nil
}

// signal wakes the loop unless it has been woken already. The caller holds mu,
// so that fd can't be closed meanwhile.
func (b *inbox) signal() {
	if !b.awake {
		b.awake = true
		wake(b.fd)
	}
}

// post queues fn and reports whether the loop will run it.
func (b *inbox) post(fn func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.tasks = append(b.tasks, fn)
	b.signal()
	return true
}

// deliver queues connections and reports whether the loop will take them over.
func (b *inbox) deliver(batch []accepted) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.accepted = append(b.accepted, batch...)
	b.signal()
	return true
}

// end makes the loop end after the tasks that are queued now.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.stop = true
		b.signal()
	}
}

// nudge wakes the loop for work that it left over itself.
func (b *inbox) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.signal()
	}
}

// take swaps the queues for the given empty ones.
func (b *inbox) take(tasks []func(), conns []accepted) ([]func(), []accepted, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awake = false
	tasks, b.tasks = b.tasks, tasks
	conns, b.accepted = b.accepted, conns
	return tasks, conns, b.stop
}

// close ends the inbox: what is queued is dropped, and so is what comes later.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, a := range b.accepted {
		closeFD(a.fd)
	}
	b.tasks, b.accepted = nil, nil
	closeFD(b.fd)
}
