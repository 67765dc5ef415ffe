//go:build linux

package reactor

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2/pkg/netpoll"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// settleBudget bounds the connections that are settled after one callback;
	// the rest waits for the next turn of the poller.
	settleBudget = 1024
	// wallClockAge is how old the loop's relation between monotonic and wall
	// clock may be: a step of the wall clock is seen within that time.
	wallClockAge = time.Second
)

// Loop is one event loop, on one operating system thread. It owns every
// connection and timer that is on it. All methods but Post, Index, Load and
// Stats must be called on the loop: from a callback of a handler, a timer or
// Post.
type Loop struct {
	index   int // -1: the acceptor
	options *Options
	log     *zap.Logger
	poller  *netpoll.Poller
	epoll   int                    // the poller's descriptor
	attach  netpoll.PollAttachment // reused to register descriptors
	inbox   *inbox
	place   *placer // where connections go that sockets of this loop accept

	conns       []*Conn         // by descriptor
	sockets     map[int]*socket // listening sockets, by descriptor
	dirtyHead   *Conn           // connections to settle after the callback
	dirtyTail   *Conn
	readBuffer  []byte
	free        freeList
	idleClosers *closer
	iov         []unix.Iovec
	msg         unix.Msghdr
	tasks       []func()   // spare memory for inbox.take
	arrivals    []accepted // likewise
	reserve     int        // descriptor to give up when there are none left; -1: none
	stopping    bool
	clock       clock
	wheel       wheel
	alarm       alarm

	thread threadClock
	load   atomic.Int64 // accepted connections that are here or on their way
	stats  loopCounters
	tid    int // 0: not bound to a thread
}

func newLoop(index int, options *Options) (*Loop, error) {
	l := &Loop{
		index: index, options: options, log: options.Logger, reserve: -1,
		sockets: map[int]*socket{}, iov: make([]unix.Iovec, 0, 16),
	}
	var err error
	if l.poller, err = netpoll.OpenPoller(); err != nil {
		return nil, fmt.Errorf("open poller: %w", err)
	}
	if l.epoll, err = descriptorOf(l.poller); err == nil {
		l.inbox, err = newInbox()
	}
	if err != nil {
		_ = l.poller.Close()
		return nil, err
	}
	if l.alarm.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		l.inbox.close()
		_ = l.poller.Close()
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	for _, fd := range []int{l.inbox.fd, l.alarm.fd} {
		// Edge-triggered: each wake-up is reported once though nobody reads it.
		if err = l.poller.AddRead(&netpoll.PollAttachment{FD: fd}, true); err != nil {
			l.closeDescriptors()
			return nil, err
		}
	}
	if index >= 0 { // the acceptor has no connections
		l.readBuffer = make([]byte, options.ReadBuffer)
	}
	l.clock.start()
	return l, nil
}

// Index returns the loop's number, from 0. Any goroutine may call it.
func (l *Loop) Index() int { return l.index }

// Post runs fn on the loop, soon, after what was posted before. Any goroutine
// may call it. After the reactor was closed fn is dropped.
func (l *Loop) Post(fn func()) { l.inbox.post(fn) }

// Now returns the loop's clock. It is read before each callback and carries a
// monotonic reading.
func (l *Loop) Now() time.Time {
	l.check()
	return l.clock.now
}

// Load returns the accepted connections that are on the loop or on their way to
// it. Any goroutine may call it.
func (l *Loop) Load() int { return int(l.load.Load()) }

// run is the loop's thread. It sends the outcome of its start to ready and
// returns when the loop has been stopped and everything on it is closed.
func (l *Loop) run(cpu int, ready chan<- error) {
	if l.index >= 0 {
		// Never unlocked: the thread ends with the goroutine, and its affinity
		// with it. The acceptor needs no thread of its own, and is cheaper
		// without.
		runtime.LockOSThread()
		l.tid = unix.Gettid()
		l.thread.open(l.tid)
	}
	if cpu >= 0 {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			l.closeDescriptors()
			ready <- fmt.Errorf("pin loop %d to cpu %d: %w", l.index, cpu, err)
			return
		}
	}
	l.clock.read()
	ready <- nil
	defer l.teardown()
	if err := l.poll(); err != nil {
		l.log.Error("loop ended: its poller failed", zap.Int("loop", l.index), zap.Error(err))
	}
}

// onEvent serves an event. It is only a hint that something may
// have happened on a descriptor: a callback of the same batch may have closed
// it, and a new one may have its number.
func (l *Loop) onEvent(fd int, ev netpoll.IOEvent) {
	l.clock.read()
	count(&l.stats.events)
	switch {
	case fd < len(l.conns) && l.conns[fd] != nil:
		l.serve(l.conns[fd], ev)
	case fd == l.inbox.fd:
		count(&l.stats.wakeups)
		l.receiveInbox()
	case fd == l.alarm.fd:
		count(&l.stats.alarms)
		l.fireTimers()
	default:
		if s := l.sockets[fd]; s != nil {
			s.accept()
		}
	}
	l.settleAll()
	l.setAlarm()
}

// receiveInbox takes over new connections and runs posted functions.
func (l *Loop) receiveInbox() {
	tasks, conns, stop := l.inbox.take(l.tasks[:0], l.arrivals[:0])
	for _, a := range conns {
		l.admit(a)
		l.settleAll()
	}
	for _, fn := range tasks {
		l.clock.read()
		l.runTask(fn)
		l.settleAll()
	}
	clear(tasks)
	clear(conns)
	if cap(tasks) > keepCap {
		tasks = nil
	}
	if cap(conns) > keepCap {
		conns = nil
	}
	l.tasks, l.arrivals = tasks, conns
	l.stopping = stop
}

func (l *Loop) runTask(fn func()) {
	defer l.guard(nil)
	fn()
}

// guard is deferred around every callback. A panic ends the connection that it
// happened on, if any, and nothing else.
func (l *Loop) guard(c *Conn) {
	v := recover()
	if v == nil {
		return
	}
	count(&l.stats.panics)
	fields := []zap.Field{zap.Int("loop", l.index), zap.Any("panic", v), zap.ByteString("stack", debug.Stack())}
	if c != nil {
		fields = append(fields, zap.Stringer("remote", c.remote))
		c.Abort(fmt.Errorf("%w: %v", ErrPanic, v))
	}
	l.log.Error("callback panicked", fields...)
}

// settleAll brings the connections that the last callback touched to rest:
// flushes them, reports what has become due, and adapts the poller.
func (l *Loop) settleAll() {
	for n := 0; l.dirtyHead != nil; n++ {
		if n == settleBudget {
			l.inbox.nudge()
			return
		}
		c := l.dirtyHead
		l.dirtyHead = c.nextDirty
		if l.dirtyHead == nil {
			l.dirtyTail = nil
		}
		c.nextDirty = nil
		c.flags &^= flagDirty
		l.settle(c)
	}
}

func (l *Loop) settle(c *Conn) {
	defer l.guard(c)
	c.settle()
}

// register makes c the owner of its descriptor's events.
func (l *Loop) register(c *Conn) {
	for c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*Conn, max(64, len(l.conns)))...)
	}
	l.conns[c.fd] = c
	l.stats.conns.Add(1)
}

// teardown closes what is on the loop. It runs on the loop's thread.
func (l *Loop) teardown() {
	l.stopping = true
	for _, c := range l.conns {
		if c != nil {
			c.finish(ErrClosed)
		}
	}
	for l.dirtyHead != nil {
		l.settleAll()
	}
	for _, s := range l.sockets {
		s.close()
	}
	l.thread.close()
	l.closeDescriptors()
}

func (l *Loop) closeDescriptors() {
	l.inbox.close()
	closeFD(l.alarm.fd)
	if l.reserve >= 0 {
		closeFD(l.reserve)
	}
	_ = l.poller.Close()
}
