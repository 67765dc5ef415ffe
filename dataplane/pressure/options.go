package pressure

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Defaults of Limits.
const (
	DefaultTheta     = 0.85 // paper, 5.3
	DefaultHeldBytes = 16 << 20
	DefaultHoldTime  = 5 * time.Second

	// minHeld is the default of Held for small pools: a queue that is as long as
	// a pool of ten fills up by chance alone, at loads that the pool can carry.
	minHeld = 100
)

// MaxSize is the largest pool.
const MaxSize = 1 << 30

// Options configure a Gate.
type Options struct {
	Start time.Time // the present; required
	Loops int       // at least 1
	// CPU returns how many requests per second the stages before and after the
	// pool can do (Eq. 1); not positive means that it is not known. It is called
	// from any loop and may be nil.
	CPU func() float64
	Limits
}

// Limits are what an update may change. What is zero takes its default.
type Limits struct {
	Size  int     // n_pool of Eq. (8); required
	Theta float64 // the threshold of U, in (0,1]; 1 never paces
	// Held and HeldBytes bound what is held, over all loops, in requests and in
	// bytes of memory; a negative Held holds none. HoldTime is how long the caller
	// holds a request at most.
	Held      int
	HeldBytes int64
	HoldTime  time.Duration
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Theta == 0 {
		l.Theta = DefaultTheta
	}
	if l.Held == 0 {
		l.Held = max(l.Size, minHeld)
	}
	l.Held = max(l.Held, 0)
	if l.HeldBytes == 0 {
		l.HeldBytes = DefaultHeldBytes
	}
	if l.HoldTime == 0 {
		l.HoldTime = DefaultHoldTime
	}
	switch {
	case l.Size < 1 || l.Size > MaxSize:
		return l, fmt.Errorf("pressure: a pool of %d: use 1 to %d", l.Size, MaxSize)
	case !(l.Theta > 0 && l.Theta <= 1): // NaN is refused too
		return l, fmt.Errorf("pressure: theta %v is not above 0 and at most 1", l.Theta)
	case l.HeldBytes < 0 || l.HoldTime < 0:
		return l, errors.New("pressure: a bound of what is held is negative")
	}
	return l, nil
}

// settings are Limits in the form that the request path needs.
type settings struct {
	Limits
	// knee is how many places are given out without a token: the request that
	// finds U below theta gets one. The rest of the pool is paced. A pool of fewer
	// than 1/(1-theta) places has no rest: with 6 places and one of them free, U is
	// at most 5/6.
	knee int64
}

func newSettings(l Limits) *settings {
	// Rounded in the pool's favour: 0.85 * 20 is 17, not a little above.
	knee := int64(math.Ceil(l.Theta*float64(l.Size) - 1e-9))
	return &settings{Limits: l, knee: min(max(knee, 1), int64(l.Size))}
}
