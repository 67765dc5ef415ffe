//go:build linux

package reactor

import (
	"time"

	"golang.org/x/sys/unix"
)

// tickLength is the resolution of timers.
const tickLength = time.Millisecond

// clock is a loop's notion of time. One reading per callback costs one reading
// of the monotonic clock; the wall clock is read once per wallClockAge.
type clock struct {
	now   time.Time
	base  time.Time // a reading of both clocks
	epoch time.Time // tick 0
	mono  int64     // CLOCK_MONOTONIC at epoch, in nanoseconds, or a little later
}

// start sets tick 0 to now.
func (c *clock) start() {
	best := time.Duration(1<<63 - 1)
	// The two clocks can't be read at once: of some tries take the one that
	// was interrupted least.
	for range 8 {
		before := time.Now()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic("clock_gettime(CLOCK_MONOTONIC): " + err.Error()) // can't fail
		}
		if took := time.Since(before); took < best {
			best, c.epoch, c.mono = took, before, ts.Nano()
		}
	}
	c.base, c.now = c.epoch, c.epoch
}

// read sets c.now.
func (c *clock) read() {
	age := time.Since(c.base)
	if age >= wallClockAge {
		c.base = time.Now()
		c.now = c.base
		return
	}
	c.now = c.base.Add(age)
}

// tick returns the last tick at or before now.
func (c *clock) tick() int64 { return int64(c.now.Sub(c.epoch) / tickLength) }

// Clock reads the clock anew, for who measures within a callback; Now is what it
// was when the callback began. It costs some tens of nanoseconds.
func (l *Loop) Clock() time.Time {
	return l.clock.base.Add(time.Since(l.clock.base))
}

// alarm is a loop's timerfd. It is set only when a timer is due earlier than
// the alarm would ring; a later timer, or none, costs no system call.
type alarm struct {
	fd   int
	at   int64 // tick at which it rings, 0 when it is not set
	want int64 // earliest tick that was asked for since, 0 when none was
}

// Schedule arms t, or arms it anew, to fire d from now: at the first
// millisecond that is not earlier, but never before the next turn of the
// poller. Timers that are due in the same millisecond fire in the order in
// which they were armed. Its cost does not depend on the number of timers.
func (l *Loop) Schedule(t *Timer, d time.Duration) {
	l.check()
	w := &l.wheel
	if t.Armed() {
		w.remove(t)
	}
	at := l.clock.now.Sub(l.clock.epoch)
	due := int64(maxTick)
	if d < maxTick*tickLength-at { // else: not in this century
		due = int64((at + max(d, 0) + tickLength - 1) / tickLength)
	}
	due = max(due, w.cur+1)
	w.add(t, due)
	if a := &l.alarm; a.want == 0 || due < a.want {
		a.want = due
	}
}

// Cancel disarms t; nothing happens when it is not armed.
func (l *Loop) Cancel(t *Timer) {
	l.check()
	if t.Armed() {
		l.wheel.remove(t)
	}
}

// fireTimers runs the timers that are due, in order.
func (l *Loop) fireTimers() {
	l.alarm.at = 0
	for now := l.clock.tick(); ; {
		t := l.wheel.pop(now)
		if t == nil {
			break
		}
		l.fire(t)
		l.settleAll()
		l.clock.read()
	}
	if _, tick, ok := l.wheel.next(); ok {
		l.alarm.want = tick
	}
}

func (l *Loop) fire(t *Timer) {
	defer l.guard(nil)
	t.Fire(l.clock.now)
}

// setAlarm makes the timerfd ring for the earliest timer, if it would not.
func (l *Loop) setAlarm() {
	a := &l.alarm
	want := a.want
	if want == 0 {
		return
	}
	a.want = 0
	if a.at != 0 && a.at <= want || l.wheel.count == 0 {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(l.clock.mono + want*int64(tickLength))}
	// Can't fail: the descriptor is ours and the time is positive.
	_ = unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
	a.at = want
}
