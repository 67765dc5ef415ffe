//go:build linux

package reactor

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// naive is the wheel's twin: a sorted list.
type naive struct {
	entries []naiveEntry
	seq     int
}

type naiveEntry struct {
	due     int64
	seq, id int
}

func (n *naive) add(id int, due int64) {
	n.remove(id)
	n.seq++
	n.entries = append(n.entries, naiveEntry{due, n.seq, id})
	slices.SortFunc(n.entries, func(a, b naiveEntry) int {
		if a.due != b.due {
			return int(a.due - b.due)
		}
		return a.seq - b.seq
	})
}

func (n *naive) remove(id int) {
	n.entries = slices.DeleteFunc(n.entries, func(e naiveEntry) bool { return e.id == id })
}

func (n *naive) pop(now int64) int {
	if len(n.entries) == 0 || n.entries[0].due > now {
		return -1
	}
	id := n.entries[0].id
	n.entries = n.entries[1:]
	return id
}

// TestWheelAgainstSortedList does random things to the wheel and to its twin.
func TestWheelAgainstSortedList(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var w wheel
		var twin naive
		timers := make([]Timer, 40)
		index := map[*Timer]int{}
		for i := range timers {
			index[&timers[i]] = i
		}
		now := int64(rng.Uint64N(1 << 40))
		w.cur = now
		for range 3000 {
			i := rng.IntN(len(timers))
			timer := &timers[i]
			switch rng.IntN(10) {
			case 0, 1, 2, 3, 4: // arm
				// All magnitudes, and often the same tick.
				due := now + 1 + int64(rng.Uint64N(1<<rng.IntN(22)))
				if rng.IntN(2) == 0 {
					due = now + 1 + int64(rng.IntN(3))*64
				}
				if timer.Armed() {
					w.remove(timer)
				}
				w.add(timer, due)
				twin.add(i, due)
			case 5, 6: // cancel
				if timer.Armed() {
					w.remove(timer)
					twin.remove(i)
				}
			default: // let time pass
				now += int64(rng.Uint64N(1 << rng.IntN(20)))
				var got, want []int
				for x := w.pop(now); x != nil; x = w.pop(now) {
					got = append(got, index[x])
				}
				for x := twin.pop(now); x >= 0; x = twin.pop(now) {
					want = append(want, x)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, tick %d: fired (-want +got):\n%s", seed, now, diff)
				}
			}
			if w.count != len(twin.entries) {
				t.Fatalf("seed %d: count %d, want %d", seed, w.count, len(twin.entries))
			}
			if slot, tick, ok := w.next(); ok {
				if first := twin.entries[0].due; tick > first {
					t.Fatalf("seed %d: next %d (slot %d) is after the first timer at %d", seed, tick, slot, first)
				}
			} else if len(twin.entries) > 0 {
				t.Fatalf("seed %d: next sees none of %d timers", seed, len(twin.entries))
			}
		}
	}
}

// TestWheelKeepsOrderAcrossLevels: of two timers for one tick the one that was
// armed first fires first, though it had to move down and the other had not.
func TestWheelKeepsOrderAcrossLevels(t *testing.T) {
	var w wheel
	var early, late Timer
	w.add(&early, 10_000)
	if w.pop(9_990) != nil {
		t.Fatal("fired too early")
	}
	w.add(&late, 10_000)
	if w.pop(10_000) != &early || w.pop(10_000) != &late || w.pop(1e9) != nil {
		t.Fatal("fired in another order")
	}
}

func TestWheelHoldsTheFarthestTick(t *testing.T) {
	var w wheel
	var timer Timer
	w.add(&timer, maxTick)
	if got := w.pop(maxTick - 1); got != nil || !timer.Armed() {
		t.Fatal("fired too early")
	}
	if got := w.pop(maxTick); got != &timer || timer.Armed() {
		t.Fatal("did not fire")
	}
}

// TestTimersFireInOrderAndNotEarly arms timers with real clocks.
func TestTimersFireInOrderAndNotEarly(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	delays := []time.Duration{30 * time.Millisecond, time.Millisecond, 0, 5 * time.Millisecond, 70 * time.Millisecond, 5 * time.Millisecond,
		500 * time.Microsecond, 1500 * time.Microsecond, -time.Second}
	type firing struct {
		id    int
		early time.Duration
	}
	fired := make(chan firing, len(delays))
	timers := make([]Timer, len(delays))
	on(t, l, func() {
		begin := l.Now()
		for i, d := range delays {
			timers[i].Fire = func(now time.Time) {
				if timers[i].Armed() {
					t.Error("timer is armed while it fires")
				}
				fired <- firing{i, d - now.Sub(begin)}
			}
			l.Schedule(&timers[i], d)
		}
	})
	var order []int
	for range delays {
		f := receive(t, fired, "timer")
		if f.early > 0 {
			t.Errorf("timer %d fired %v too early", f.id, f.early)
		}
		order = append(order, f.id)
	}
	// 2 and 8 are due in the next millisecond, as are the sub-millisecond ones
	// in theirs; ties go by arming.
	rank := map[int]time.Duration{}
	for i, d := range delays {
		rank[i] = max(d, 0)
	}
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if rank[a] > rank[b]+time.Millisecond || rank[a] == rank[b] && a > b {
			t.Fatalf("order %v: %d before %d", order, a, b)
		}
	}
}

func TestCancelAndRearm(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	fired := make(chan string, 10)
	var cancelled, moved, later, first, second Timer
	cancelled.Fire = func(time.Time) { fired <- "cancelled" }
	moved.Fire = func(time.Time) { fired <- "moved" }
	later.Fire = func(time.Time) { fired <- "later" }
	second.Fire = func(time.Time) { fired <- "second" }
	first.Fire = func(time.Time) {
		fired <- "first"
		l.Cancel(&second) // due in the same millisecond
	}
	on(t, l, func() {
		l.Cancel(&cancelled) // not armed: nothing happens
		l.Schedule(&cancelled, time.Millisecond)
		l.Schedule(&moved, time.Millisecond)
		l.Schedule(&first, 5*time.Millisecond)
		l.Schedule(&second, 5*time.Millisecond)
		l.Schedule(&later, 20*time.Millisecond)
		l.Schedule(&moved, 30*time.Millisecond)
		if !moved.Armed() || !cancelled.Armed() {
			t.Error("not armed")
		}
		l.Cancel(&cancelled)
		if cancelled.Armed() {
			t.Error("armed after Cancel")
		}
	})
	var got []string
	for range 3 {
		got = append(got, receive(t, fired, "timer"))
	}
	if diff := cmp.Diff([]string{"first", "later", "moved"}, got); diff != "" {
		t.Fatalf("fired (-want +got):\n%s", diff)
	}
}

// TestTimerArmsItself: a periodic timer, and one that asks for no delay from
// within Fire, which must not keep the loop from its other work.
func TestTimerArmsItself(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	done := make(chan struct{})
	var timer, eager Timer
	n := 0
	timer.Fire = func(time.Time) {
		if n++; n == 5 {
			close(done)
			return
		}
		l.Schedule(&timer, 2*time.Millisecond)
	}
	eager.Fire = func(time.Time) { l.Schedule(&eager, 0) }
	on(t, l, func() { l.Schedule(&timer, 2*time.Millisecond); l.Schedule(&eager, 0) })
	receive(t, done, "fifth firing")
	on(t, l, func() { l.Cancel(&eager) })
}

// TestAlarmIsLazy: arming a later timer and cancelling one do not touch the
// timerfd, and no alarm stays set when no timer is left.
func TestAlarmIsLazy(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	fired := make(chan struct{}, 1)
	var near, far, request Timer
	near.Fire = func(time.Time) { fired <- struct{}{} }
	far.Fire = near.Fire
	request.Fire = near.Fire
	on(t, l, func() {
		turn := l.setAlarm // as after each callback
		l.Schedule(&near, 40*time.Millisecond)
		turn()
		set := l.alarm.at
		l.Schedule(&far, time.Hour)
		turn()
		for range 100 { // as one per request
			l.Schedule(&request, time.Second)
			turn()
			l.Cancel(&request)
			turn()
		}
		l.Cancel(&far)
		if set == 0 || l.alarm.at != set {
			t.Errorf("alarm moved from %d to %d", set, l.alarm.at)
		}
	})
	receive(t, fired, "timer")
	on(t, l, func() {
		if l.alarm.at != 0 {
			t.Errorf("alarm is set at %d though no timer is armed", l.alarm.at)
		}
	})
	if n := l.Stats().Alarms; n != 1 {
		t.Errorf("%d alarms, want 1", n)
	}
}

// TestScheduleOnTheTick: no delay at the very beginning of a millisecond is
// still not the current one, whose timers may just be firing.
func TestScheduleOnTheTick(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	var timer Timer
	on(t, l, func() {
		tick := l.clock.tick() + 5
		l.clock.now = l.clock.epoch.Add(time.Duration(tick) * tickLength)
		l.wheel.cur = tick
		l.Schedule(&timer, 0)
		if timer.due != tick+1 {
			t.Errorf("due at %d, want %d", timer.due, tick+1)
		}
		l.Cancel(&timer)
	})
}

func TestScheduleFarFuture(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	var timer Timer
	on(t, l, func() {
		l.Schedule(&timer, 1<<63-1)
		if timer.due != maxTick {
			t.Errorf("due at %d, want %d", timer.due, int64(maxTick))
		}
		l.Schedule(&timer, 24*time.Hour)
		if got, want := timer.due-l.clock.tick(), int64(24*time.Hour/time.Millisecond); got < want || got > want+1 {
			t.Errorf("due in %d ticks, want %d", got, want)
		}
		l.Cancel(&timer)
	})
}

func TestClockFollowsBothClocks(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	for range 3 {
		before := time.Now()
		var now time.Time
		on(t, l, func() { now = l.Now() })
		if after := time.Now(); now.Before(before) || now.After(after) {
			t.Fatalf("loop's clock says %v, not in [%v, %v]", now, before, after)
		}
		// Round drops the monotonic reading: compare the wall clocks.
		if d := now.Round(0).Sub(time.Now().Round(0)).Abs(); d > time.Minute {
			t.Fatalf("wall clocks differ by %v", d)
		}
	}
	c := clock{base: time.Now().Add(-time.Minute)}
	c.read()
	if age := time.Since(c.base); age > 30*time.Second {
		t.Errorf("wall clock was not read again; reading is %v old", age)
	}
}
