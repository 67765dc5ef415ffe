package metrics

import "sync/atomic"

// tally counts by key. One loop adds, any goroutine reads. A new key costs an
// allocation, once; keys are never removed. Lookup is linear: the keys are few,
// and those that come often came first.
type tally[K comparable] struct {
	head atomic.Pointer[entry[K]]
	keys int // the owner's
}

type entry[K comparable] struct {
	key  K
	n    counter
	next atomic.Pointer[entry[K]]
}

// inc counts key. Beyond limit distinct keys a new one is counted as other.
func (t *tally[K]) inc(key K, limit int, other K) {
	link := &t.head
	for e := link.Load(); e != nil; e = link.Load() {
		if e.key == key {
			e.n.inc()
			return
		}
		link = &e.next
	}
	if t.keys >= limit && key != other {
		t.inc(other, limit, other)
		return
	}
	t.keys++
	e := &entry[K]{key: key}
	e.n.inc()
	link.Store(e) // publishes the key: readers see a whole entry
}

// each calls fn with every key and its count.
func (t *tally[K]) each(fn func(key K, n float64)) {
	for e := t.head.Load(); e != nil; e = e.next.Load() {
		fn(e.key, e.n.value())
	}
}
