package queueing

import (
	"errors"
	"fmt"
	"math"
)

// Pipeline is a series of stages that every request passes (paper 3.1). Each is
// fed at the pipeline's rate; its Lambda is not used.
type Pipeline []Queue

// Model is one of Queue's approximations: Queue.MMc, Queue.GGc.
type Model func(Queue) (Figures, error)

// Bound returns the most that the pipeline sustains, in requests per second, and
// the index of the stage that bounds it. Source: paper, Eq. (1).
func (p Pipeline) Bound() (lambda float64, bottleneck int, err error) {
	if len(p) == 0 {
		return 0, 0, fmt.Errorf("%w: a pipeline without stages", ErrDomain)
	}
	lambda = math.Inf(1)
	for i, q := range p {
		c, err := Capacity(q.Mu, q.Servers)
		if err != nil {
			return 0, i, err
		}
		if c < lambda {
			lambda, bottleneck = c, i
		}
	}
	return lambda, bottleneck, nil
}

// At returns the mean time of a request in all stages at lambda per second, in
// seconds. It takes the stages as independent: what leaves one arrives at the
// next with the ArrivalCV given there.
func (p Pipeline) At(lambda float64, m Model) (float64, error) {
	if len(p) == 0 {
		return 0, fmt.Errorf("%w: a pipeline without stages", ErrDomain)
	}
	sum := 0.0
	for _, q := range p {
		q.Lambda = lambda
		f, err := m(q)
		if err != nil {
			return 0, err
		}
		sum += f.Time
	}
	return sum, nil
}

// MaxLoad returns the greatest rate at which a request takes at most target
// seconds in the mean: 0 when it takes longer even on an idle pipeline.
func (p Pipeline) MaxLoad(target float64, m Model) (float64, error) {
	high, _, err := p.Bound()
	if err != nil {
		return 0, err
	}
	if !(target > 0) {
		return 0, fmt.Errorf("%w: target %v", ErrDomain, target)
	}
	idle, err := p.At(0, m)
	if err != nil || idle > target {
		return 0, err
	}
	low := 0.0
	for range 60 { // halves the interval to the last bits of a float64
		mid := low + (high-low)/2
		switch w, err := p.At(mid, m); {
		case errors.Is(err, ErrUnstable) || err == nil && w > target:
			high = mid
		case err != nil:
			return 0, err
		default:
			low = mid
		}
	}
	return low, nil
}

// Knee returns the rate at which power, throughput over response time, is
// greatest (Kleinrock): below it more load costs little, above it time grows
// faster than throughput. For M/M/1 it is half of the capacity.
func (p Pipeline) Knee(m Model) (float64, error) {
	high, _, err := p.Bound()
	if err != nil {
		return 0, err
	}
	low := 0.0
	power := func(lambda float64) (float64, error) {
		w, err := p.At(lambda, m)
		if errors.Is(err, ErrUnstable) {
			return 0, nil
		}
		return lambda / w, err
	}
	for range 100 { // thirds: power has one peak, for time is convex in the rate
		a, b := low+(high-low)/3, high-(high-low)/3
		pa, err := power(a)
		if err != nil {
			return 0, err
		}
		pb, err := power(b)
		if err != nil {
			return 0, err
		}
		if pa < pb {
			low = a
		} else {
			high = b
		}
	}
	return low, nil
}
