//go:build linux

package reactor

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// LoopStats are a loop's counters since its start.
type LoopStats struct {
	Conns        int64  // open connections, accepted and dialled
	Accepted     uint64 // connections taken over from listeners
	Dialed       uint64 // connections begun by Dial
	Events       uint64 // events that the poller reported
	Wakeups      uint64 // of those, wake-ups by Post and by the acceptor
	Alarms       uint64 // of those, expirations of the loop's timerfd
	Panics       uint64 // panics of handlers, timers and posted functions
	AcceptErrors uint64 // failed accepts, each followed by a pause
	Shed         uint64 // connections closed at once for want of descriptors
	BusyNanos    int64  // CPU time of the loop's thread
}

type loopCounters struct {
	conns                                     atomic.Int64
	accepted, dialed, events, wakeups, alarms atomic.Uint64
	panics, acceptErrors, shed                atomic.Uint64
}

// Stats returns the loop's counters. Any goroutine may call it.
func (l *Loop) Stats() LoopStats {
	s := &l.stats
	return LoopStats{
		Conns: s.conns.Load(), Accepted: s.accepted.Load(), Dialed: s.dialed.Load(),
		Events: s.events.Load(), Wakeups: s.wakeups.Load(), Alarms: s.alarms.Load(),
		Panics: s.panics.Load(), AcceptErrors: s.acceptErrors.Load(), Shed: s.shed.Load(),
		BusyNanos: l.thread.read(),
	}
}

// count adds one to a counter that only this thread writes.
func count(c *atomic.Uint64) { c.Store(c.Load() + 1) }

// threadClock reads the CPU time of a thread from any other thread, so that
// knowing how busy a loop is costs the loop nothing.
type threadClock struct {
	mu    sync.Mutex
	tid   int   // 0: the thread has not begun or has ended
	nanos int64 // what it had used when it ended
}

func (t *threadClock) open(tid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tid = tid
}

// close keeps the thread's last reading: its number may be used again.
func (t *threadClock) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tid != 0 {
		t.nanos, t.tid = threadNanos(t.tid), 0
	}
}

func (t *threadClock) read() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tid != 0 {
		t.nanos = threadNanos(t.tid)
	}
	return t.nanos
}

// threadNanos returns the CPU time of a thread of this process.
func threadNanos(tid int) int64 {
	const perThread, scheduler = 4, 2 // CPUCLOCK_PERTHREAD_MASK, CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|perThread|scheduler), &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
