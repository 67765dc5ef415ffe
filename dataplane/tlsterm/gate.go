package tlsterm

import (
	"container/list"
	"sync"
)

// gate bounds the handshakes that compute at once. Those that have begun go
// before new ones, because they hold memory and need little more; within both
// kinds the order is that of arrival.
type gate struct {
	mu    sync.Mutex
	free  int
	used  int
	begun list.List // of func()
	fresh list.List // of func()
}

// enter runs grant as soon as there is a place, at once if there is one now, on
// the goroutine that calls enter or leave. grant must not block. The element is
// what withdraw takes; it is nil when the place was granted at once.
func (g *gate) enter(begun bool, grant func()) *list.Element {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.used++
		g.mu.Unlock()
		grant()
		return nil
	}
	defer g.mu.Unlock()
	if begun {
		return g.begun.PushBack(grant)
	}
	return g.fresh.PushBack(grant)
}

// withdraw gives up waiting. A place that was granted already is kept.
func (g *gate) withdraw(e *list.Element) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Remove ignores an element that is in no list or in another one.
	g.begun.Remove(e)
	g.fresh.Remove(e)
}

// leave gives a place back, to the first one that waits.
func (g *gate) leave() {
	g.mu.Lock()
	e, queue := g.begun.Front(), &g.begun
	if e == nil {
		e, queue = g.fresh.Front(), &g.fresh
	}
	if e == nil {
		g.free++
		g.used--
		g.mu.Unlock()
		return
	}
	grant := queue.Remove(e).(func())
	g.mu.Unlock()
	grant()
}

func (g *gate) stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{Computing: g.used, Waiting: g.begun.Len() + g.fresh.Len()}
}
