//go:build linux

package reactor

import (
	"math/bits"
	"time"
)

// Timer is a one-shot timer of a loop. It is embedded in its owner, so that
// arming it allocates nothing; the zero value is a timer that is not armed.
// A Timer belongs to the loop that it was scheduled on.
type Timer struct {
	// Fire is called on the loop when the timer expires. It may arm the timer
	// again.
	Fire func(now time.Time)

	next, prev *Timer
	due        int64 // tick
	slot       int16 // index into wheel.slots plus one; 0 when not armed
}

// Armed reports whether the timer will fire.
func (t *Timer) Armed() bool { return t.slot != 0 }

const (
	slotBits   = 6
	slotCount  = 1 << slotBits
	slotMask   = slotCount - 1
	levelCount = 7
	// maxTick is the last tick that the wheel can hold: 139 years of
	// milliseconds.
	maxTick = 1<<(slotBits*levelCount) - 1
)

// wheel is a hierarchical timing wheel over ticks. It reads no clock and makes
// no system calls. A level has 64 slots; a slot of level k spans 64^k ticks.
//
// Invariant: a timer is on the level of the highest group of six bits in which
// its due tick differs from cur. So timers of one due tick are always in one
// slot, in the order in which they were added, and the lowest level in use has
// the earliest timer.
type wheel struct {
	cur      int64 // no timer is due at or before cur, except while pop returns them
	count    int
	occupied [levelCount]uint64 // bit i: slot i of the level is in use
	slots    [levelCount * slotCount]timerList
}

type timerList struct{ head, tail *Timer }

// add puts t, which is not armed, into the slot of the tick due >= w.cur.
func (w *wheel) add(t *Timer, due int64) {
	level := 0
	if x := uint64(w.cur ^ due); x != 0 {
		level = (bits.Len64(x) - 1) / slotBits
	}
	index := int(due>>(level*slotBits)) & slotMask
	slot := level*slotCount + index
	t.due, t.slot = due, int16(slot+1)
	list := &w.slots[slot]
	t.prev, t.next = list.tail, nil
	if list.tail == nil {
		list.head = t
		w.occupied[level] |= 1 << index
	} else {
		list.tail.next = t
	}
	list.tail = t
	w.count++
}

// remove takes t, which is armed, out of the wheel.
func (w *wheel) remove(t *Timer) {
	slot := int(t.slot - 1)
	list := &w.slots[slot]
	if t.prev == nil {
		list.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		list.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	if list.head == nil {
		w.occupied[slot>>slotBits] &^= 1 << (slot & slotMask)
	}
	t.next, t.prev, t.slot = nil, nil, 0
	w.count--
}

// next returns the slot with the earliest timers and the tick at which it
// starts: for level 0 that is when they are due, for others when they must move
// down. ok is false when the wheel is empty.
func (w *wheel) next() (slot int, tick int64, ok bool) {
	for level := range w.occupied {
		if set := w.occupied[level]; set != 0 {
			index := bits.TrailingZeros64(set)
			shift := level * slotBits
			above := w.cur >> (shift + slotBits) << (shift + slotBits)
			return level*slotCount + index, above | int64(index)<<shift, true
		}
	}
	return 0, 0, false
}

// pop takes out and returns the earliest timer that is due at or before now, or
// nil when there is none. It returns timers of one tick in the order in which
// they were added.
func (w *wheel) pop(now int64) *Timer {
	for {
		slot, tick, ok := w.next()
		if !ok || tick > now {
			w.cur = max(w.cur, now)
			return nil
		}
		w.cur = tick
		if slot < slotCount {
			t := w.slots[slot].head
			w.remove(t)
			return t
		}
		w.cascade(slot)
	}
}

// cascade moves the timers of a slot that starts at w.cur to lower levels.
func (w *wheel) cascade(slot int) {
	t := w.slots[slot].head
	w.slots[slot] = timerList{}
	w.occupied[slot>>slotBits] &^= 1 << (slot & slotMask)
	for t != nil {
		next := t.next
		w.count--
		w.add(t, t.due)
		t = next
	}
}
