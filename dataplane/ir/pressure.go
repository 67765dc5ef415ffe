package ir

import (
	"errors"
	"fmt"
	"time"
)

// Pressure is what happens to requests when a cluster's pool fills up (paper,
// 3.4). Zero values mean the defaults.
type Pressure struct {
	// Theta is the utilisation of the pool, above 0 and at most 1, from which on
	// places are given out at the paced rate of Eq. 9; default 0.85. With 1 every
	// place is given out at once.
	Theta float64
	// Off is Theta 1: the pool's size and the bounds below stay.
	Off bool
	// Held is the most requests that are held at once, over all loops; default
	// the pool's size, but at least 100. Negative holds none.
	Held int
	// HeldBytes is how many bytes of held requests are kept in memory, over all
	// loops; default 16 MiB.
	HeldBytes int64
	// HoldTime is how long a request is held at most; default 5 s.
	HoldTime time.Duration
}

// maxHeld bounds Held; maxHoldTime bounds HoldTime.
const (
	maxHeld     = 1_000_000
	maxHoldTime = time.Hour
)

// Validate tells what is out of range.
func (p Pressure) Validate() error {
	switch {
	case !(p.Theta >= 0 && p.Theta <= 1): // NaN is refused too
		return fmt.Errorf("pressure: theta %v must be above 0 and at most 1", p.Theta)
	case p.Held > maxHeld:
		return fmt.Errorf("pressure: %d held requests are more than %d", p.Held, maxHeld)
	case p.HeldBytes < 0:
		return fmt.Errorf("pressure: %d bytes of held requests must not be negative", p.HeldBytes)
	case p.HoldTime < 0 || p.HoldTime > maxHoldTime:
		return fmt.Errorf("pressure: the hold time %v must be between 0 and %v", p.HoldTime, maxHoldTime)
	}
	return nil
}

// AdaptiveMode is what is done with the adaptive timeout.
type AdaptiveMode uint8

// The modes.
const (
	// AdaptiveDefault is what the gateway does with clusters that say nothing; of
	// the gateway itself it is AdaptiveEnforce.
	AdaptiveDefault AdaptiveMode = iota
	// AdaptiveEnforce cuts requests whose answer does not begin in time.
	AdaptiveEnforce
	// AdaptiveObserve computes and shows the deadline, and cuts nothing.
	AdaptiveObserve
	// AdaptiveOff does not compute it.
	AdaptiveOff
)

// String returns the mode's name.
func (m AdaptiveMode) String() string {
	switch m {
	case AdaptiveDefault:
		return "default"
	case AdaptiveEnforce:
		return "enforce"
	case AdaptiveObserve:
		return "observe"
	case AdaptiveOff:
		return "off"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// AdaptiveTimeout is the estimator of a cluster's response time (paper, Eq. 13)
// and the deadline that follows from it: beta times the estimate, between Min
// and Max. Zero values mean the defaults.
type AdaptiveTimeout struct {
	Mode AdaptiveMode
	// Alpha is the weight of one answer, between 0 and 1; default 0.1.
	Alpha float64
	// Beta is the deadline in estimates, above 1 and at most 100; default 2.5.
	Beta float64
	// Initial is the estimate before the first answer; default Max/Beta.
	Initial time.Duration
	// Min is the least deadline; default 5 s, or Max when that is less.
	Min time.Duration
	// Max is the greatest deadline, at most 1 h; default the pool's
	// ResponseTimeout.
	Max time.Duration
}

const (
	maxBeta     = 100
	maxDeadline = time.Hour
)

// Validate tells what is out of range.
func (a AdaptiveTimeout) Validate() error {
	switch {
	case a.Mode > AdaptiveOff:
		return fmt.Errorf("adaptive timeout: mode %d is unknown", a.Mode)
	case !(a.Alpha >= 0 && a.Alpha < 1): // NaN is refused too
		return fmt.Errorf("adaptive timeout: alpha %v must be between 0 and 1", a.Alpha)
	case a.Beta != 0 && !(a.Beta > 1 && a.Beta <= maxBeta):
		return fmt.Errorf("adaptive timeout: beta %v must be above 1 and at most %d", a.Beta, maxBeta)
	case a.Min < 0 || a.Max < 0 || a.Initial < 0:
		return errors.New("adaptive timeout: min, max and initial must not be negative")
	case a.Max > maxDeadline || a.Min > maxDeadline || a.Initial > maxDeadline:
		return fmt.Errorf("adaptive timeout: min, max and initial must be at most %v", maxDeadline)
	case a.Max > 0 && a.Min > a.Max:
		return fmt.Errorf("adaptive timeout: min %v is above max %v", a.Min, a.Max)
	case a.Max > 0 && a.Initial > a.Max:
		return fmt.Errorf("adaptive timeout: initial %v is above max %v", a.Initial, a.Max)
	}
	return nil
}
