package queueing

import (
	"errors"
	"fmt"
	"math"
	"time"
)

var (
	// ErrUnstable is returned where arrivals come as fast as the servers can
	// serve, or faster: the queue has no mean.
	ErrUnstable = errors.New("unstable: arrivals reach the capacity")
	// ErrDomain is returned for what is no rate, no time or no number of servers.
	ErrDomain = errors.New("out of the model's domain")
)

// MaxServers bounds the number of servers of a stage; the time of Erlang's
// recursion grows with it.
const MaxServers = 1_000_000

// Capacity returns what c servers carry, in requests per second, when each
// serves mu per second. Source: paper, Eq. (2).
func Capacity(mu float64, c int) (float64, error) {
	if err := checkServers(mu, c); err != nil {
		return 0, err
	}
	return float64(c) * mu, nil
}

// ServiceRate returns the requests per second of one worker, for a request that
// takes cpu on the processor and waits io for input and output, of which the
// fraction async, in [0,1], is used for other requests: 0 for a thread per
// request, 1 for an event loop that never blocks. Source: paper, Eq. (3).
func ServiceRate(cpu, io time.Duration, async float64) (float64, error) {
	busy := cpu.Seconds() + io.Seconds()*(1-async) // Eq. (3)
	if cpu < 0 || io < 0 || !(async >= 0 && async <= 1) || busy <= 0 {
		return 0, fmt.Errorf("%w: cpu %v, io %v, async %v", ErrDomain, cpu, io, async)
	}
	return 1 / busy, nil
}

// Intensity returns rho, the part of the capacity that arrivals at lambda per
// second use: 1 or more means unstable. Source: paper, Eq. (4).
func Intensity(lambda, mu float64, c int) (float64, error) {
	if err := checkServers(mu, c); err != nil {
		return 0, err
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return 0, fmt.Errorf("%w: lambda %v", ErrDomain, lambda)
	}
	return lambda / (float64(c) * mu), nil
}

// WaitProbability returns the chance, in [0,1], that a new request must queue.
// lambda and mu are in requests per second; c is the number of servers.
// It returns [ErrUnstable] when lambda >= c*mu. Source: paper, Eq. (5).
//
// Chances below the smallest float64 are returned as 0.
func WaitProbability(lambda, mu float64, c int) (float64, error) {
	rho, err := stable(lambda, mu, c)
	if err != nil {
		return 0, err
	}
	return erlangC(c, rho), nil
}

// QueueDelay returns the mean time that a request waits before its service, in
// seconds. It returns [ErrUnstable] when lambda >= c*mu. Source: paper, Eq. (6).
func QueueDelay(lambda, mu float64, c int) (float64, error) {
	rho, err := stable(lambda, mu, c)
	if err != nil {
		return 0, err
	}
	return erlangC(c, rho) / (float64(c) * mu * (1 - rho)), nil
}

// ResponseTime returns the mean time from a request's arrival to the end of its
// service, in seconds. It returns [ErrUnstable] when lambda >= c*mu.
// Source: paper, Eq. (7).
func ResponseTime(lambda, mu float64, c int) (float64, error) {
	wq, err := QueueDelay(lambda, mu, c)
	if err != nil {
		return 0, err
	}
	return wq + 1/mu, nil
}

// erlangC is Eq. (5) for rho < 1, by way of Erlang B: the paper's form needs
// (c*rho)^c and c!, which overflow from about c = 150. The recursion
// B(k) = a*B(k-1) / (k + a*B(k-1)) has only positive terms and values in [0,1]:
// its error stays within some units of the last place for each step.
func erlangC(c int, rho float64) float64 {
	a := float64(c) * rho
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - rho*(1-b))
}

// checkServers refuses what are no servers.
func checkServers(mu float64, c int) error {
	if !(mu > 0) || math.IsInf(mu, 1) || c < 1 || c > MaxServers {
		return fmt.Errorf("%w: mu %v, c %d", ErrDomain, mu, c)
	}
	return nil
}

// stable returns rho, or why there is no stable queue.
func stable(lambda, mu float64, c int) (float64, error) {
	rho, err := Intensity(lambda, mu, c)
	if err != nil {
		return 0, err
	}
	if rho >= 1 {
		return 0, fmt.Errorf("%w: lambda %v, c*mu %v", ErrUnstable, lambda, float64(c)*mu)
	}
	return rho, nil
}
