package http2

import "time"

// allowance bounds how often a client may make work that serves nobody. What
// is used comes back with time, up to burst.
type allowance struct {
	left  float64
	burst float64
	rate  float64 // per second
	at    time.Time
}

func newAllowance(burst, perSecond float64) allowance {
	return allowance{left: burst, burst: burst, rate: perSecond}
}

// use takes n and reports whether there was as much.
func (a *allowance) use(now time.Time, n float64) bool {
	if !a.at.IsZero() {
		a.left = min(a.burst, a.left+a.rate*now.Sub(a.at).Seconds())
	}
	a.at = now
	a.left -= n
	return a.left >= 0
}

// earn gives n back for work that was useful.
func (a *allowance) earn(n float64) { a.left = min(a.burst, a.left+n) }
