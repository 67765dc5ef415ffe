package pressure

import (
	"math"
	"time"
)

// Bounds of RetryAfter.
const (
	MinRetryAfter = time.Second
	MaxRetryAfter = time.Minute
)

// RetryAfter returns when a client that was shed should come again: when what is
// held now will have been served at the rate that the pool has, in whole
// seconds.
func (g *Gate) RetryAfter(now time.Time) time.Duration {
	if at := g.since(now); at >= g.due.Load() {
		g.step(at, 0)
	}
	seconds := math.Ceil(float64(g.held.Load()+1) / g.capacity.load())
	return min(max(time.Duration(min(seconds, 3600))*time.Second, MinRetryAfter), MaxRetryAfter)
}

// State is how a gate is, in a word.
type State uint8

// The states.
const (
	Calm     State = iota // U is below theta
	Pacing                // U is at theta or above, and nobody had to wait
	Holding               // requests are held
	Shedding              // requests were shed within the last second
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"calm", "pacing", "holding", "shedding"}[s]
}

// Stats is a Gate's state at one moment.
type Stats struct {
	State       State
	Active      int64
	Size        int
	Utilisation float64 // U, Eq. (8)
	Theta       float64
	Limit       int64 // the places that may be in use now
	Held        int64
	HeldBytes   int64
	MaxHeld     int
	// As they were when the gate last had to decide something: 0 before.
	Service  time.Duration // mean time that a request keeps its place
	Capacity float64       // Lambda_max, Eq. (1), per second
	Rate     float64       // r_bp, Eq. (9), per second
}

// Stats returns the state; it changes nothing.
func (g *Gate) Stats(now time.Time) Stats {
	s, capacity := g.set.Load(), g.capacity.load()
	st := Stats{
		Active: max(g.active.Load(), 0), Size: s.Size, Theta: s.Theta, Limit: g.limit.Load(),
		Held: max(g.held.Load(), 0), HeldBytes: max(g.bytes.Load(), 0), MaxHeld: s.Held,
		Service: time.Duration(g.service.load() * 1e9),
	}
	st.Utilisation = Utilisation(st.Active, int64(s.Size))
	if !math.IsInf(capacity, 1) {
		st.Capacity, st.Rate = capacity, g.rate.load()
	}
	shed := g.shedAt.Load()
	switch {
	case shed > 0 && g.since(now)-shed < int64(time.Second):
		st.State = Shedding
	case st.Held > 0:
		st.State = Holding
	case st.Utilisation >= s.Theta:
		st.State = Pacing
	}
	return st
}
