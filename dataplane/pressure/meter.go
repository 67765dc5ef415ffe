package pressure

import "math"

const (
	window = 1.0  // seconds that a measurement weighs, in the mean
	gap    = 0.5  // seconds between steps beyond which the pool was calm
	least  = 1e-6 // seconds; the shortest service
	most   = 3600 // and the longest
)

// work is what loops have finished: requests that gave their place back, and
// for how long they had it in all.
type work struct{ departures, residence uint64 }

// since returns what was done after earlier. The counters wrap.
func (w work) since(earlier work) work {
	return work{w.departures - earlier.departures, w.residence - earlier.residence}
}

// work adds up what the loops have done so far.
func (g *Gate) work() work {
	var w work
	for i := range g.loops {
		if l := g.loops[i].Load(); l != nil {
			w.departures += l.departures.Load()
			w.residence += l.residence.Load()
		}
	}
	return w
}

// meter measures the pool's stage: how long a request keeps its place. While the
// gate is at work that is the time of all places over the departures, which
// counts those that have not come back (the maximum-likelihood mean of censored
// exponential times); an upstream that hangs is seen at once, not when its
// requests end. When it was calm it is the mean of those that ended.
type meter struct {
	area       float64 // place-seconds in the window
	departures float64
	places     float64 // in use at the last step
	quiet      float64 // seconds since the last departure
}

// add lets dt seconds pass, at the end of which active places are in use.
func (m *meter) add(dt, active float64, done work) {
	n := float64(done.departures)
	m.quiet += dt
	if n > 0 {
		m.quiet = 0
	}
	if dt > gap {
		// Nobody looked: how many places were in use meanwhile is not known.
		if n > 0 {
			m.area, m.departures = float64(done.residence)/1e9, n
			// It weighs as much as the window, not as the hours before it.
			if w := window * max(active, 1); m.area > w {
				m.area, m.departures = w, m.departures*w/m.area
			}
		}
	} else {
		f := math.Exp(-dt / window)
		m.area = m.area*f + (m.places+active)/2*dt
		m.departures = m.departures*f + n
	}
	m.places = active
}

// mean returns the mean time of a request in the pool, in seconds; 0 when
// there was nothing to measure yet.
func (m *meter) mean() float64 {
	if m.area <= 0 {
		return 0
	}
	// At least one departure in the time since the last one and the window before.
	longest := min(max(m.places, 1)*(m.quiet+window), most)
	if m.departures*longest <= m.area {
		return longest
	}
	return min(max(m.area/m.departures, least), most)
}
