package ewma

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Defaults of Options.
const (
	DefaultAlpha    = 0.1
	DefaultBeta     = 2.5
	DefaultMin      = 5 * time.Second
	DefaultMax      = time.Minute
	DefaultHalfLife = time.Minute
)

// MaxLimit is the largest Max; it keeps a recorder's sum within its bits.
const MaxLimit = time.Hour

// Options configure an Estimator. What is zero takes its default.
type Options struct {
	Start time.Time // the present; required
	Loops int       // recorders; default 1

	// Alpha is the weight of an answer in Eq. (13), in (0,1).
	Alpha float64
	// Beta is the deadline in estimates, above 1 and at most 100.
	Beta float64
	// Initial is the estimate before the first answer, and where it returns to
	// when there are none; default Max/Beta, so that the first deadline is Max.
	Initial time.Duration
	// Min and Max bound the deadline. Max is at most MaxLimit; where it is below
	// the default of Min, that is the default of Min.
	Min, Max time.Duration
	// HalfLife says how an estimate ages: it holds for this long after the last
	// answer, then its distance from Initial halves in each further HalfLife.
	// Negative: it does not age.
	HalfLife time.Duration

	// Plain leaves Eq. (13) as it is: no catch-up after a change, and Initial
	// weighs like an estimate that was learned.
	Plain bool
}

// withDefaults fills in and checks o.
func (o Options) withDefaults() (Options, error) {
	setFloat := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	setFloat(&o.Alpha, DefaultAlpha)
	setFloat(&o.Beta, DefaultBeta)
	set(&o.Max, DefaultMax)
	set(&o.Min, min(DefaultMin, max(o.Max, 1)))
	set(&o.HalfLife, DefaultHalfLife)
	if o.Loops == 0 {
		o.Loops = 1
	}
	switch {
	case o.Start.IsZero():
		return o, errors.New("estimator: no start time")
	case o.Loops < 0:
		return o, fmt.Errorf("estimator: %d loops", o.Loops)
	case !(o.Alpha > 0 && o.Alpha < 1): // NaN is refused too
		return o, fmt.Errorf("estimator: alpha %v is not between 0 and 1", o.Alpha)
	case !(o.Beta > 1 && o.Beta <= 100):
		return o, fmt.Errorf("estimator: beta %v is not above 1 and at most 100", o.Beta)
	case o.Min < 0 || o.Min > o.Max:
		return o, fmt.Errorf("estimator: the least deadline %v is not between 0 and the greatest, %v", o.Min, o.Max)
	case o.Max > MaxLimit:
		return o, fmt.Errorf("estimator: the greatest deadline %v is above %v", o.Max, MaxLimit)
	case o.Initial < 0 || o.Initial > o.Max:
		return o, fmt.Errorf("estimator: the initial estimate %v is not between 0 and the greatest deadline, %v", o.Initial, o.Max)
	}
	// Rounded up: the first deadline is Max, not a nanosecond less.
	set(&o.Initial, time.Duration(math.Ceil(float64(o.Max)/o.Beta)))
	return o, nil
}
