package simulation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Config is a queue to simulate.
type Config struct {
	Arrivals  Dist // times between arrivals
	Services  Dist
	Servers   int
	Customers int // measured
	WarmUp    int // customers before the measured ones
	Seed      uint64
}

// Result is what the measured customers met. Times are in seconds.
type Result struct {
	Delay      float64 // mean wait before the service
	DelayError float64 // half width of the delay's 95 % confidence interval, by batch means
	Time       float64 // mean wait and service
	Waited     float64 // part of the customers that waited
	P50, P99   float64 // quantiles of Time
}

const batches = 20

// Run simulates the queue.
func Run(c Config) (Result, error) {
	if c.Arrivals == nil || c.Services == nil || c.Servers < 1 || c.Customers < batches || c.WarmUp < 0 {
		return Result{}, errors.New("simulation: incomplete configuration")
	}
	// Arrivals and services have streams of their own: a change of one leaves the
	// other as it was.
	arrivals := rand.New(rand.NewPCG(c.Seed, 1))
	services := rand.New(rand.NewPCG(c.Seed, 2))
	free := make(servers, c.Servers) // all free at 0
	times := make([]float64, 0, c.Customers)
	var sums [batches]float64
	var delay, waited, now float64
	per := c.Customers / batches
	for i := -c.WarmUp; i < c.Customers; i++ {
		now += c.Arrivals(arrivals)
		start := max(now, free[0]) // FIFO: the next customer takes the first server to be free
		service := c.Services(services)
		free.replace(start + service)
		if i < 0 {
			continue
		}
		w := start - now
		delay += w
		if w > 0 {
			waited++
		}
		if b := i / per; b < batches {
			sums[b] += w
		}
		times = append(times, w+service)
	}
	n := float64(c.Customers)
	r := Result{Delay: delay / n, Waited: waited / n}
	for _, t := range times {
		r.Time += t / n
	}
	slices.Sort(times)
	r.P50, r.P99 = times[len(times)/2], times[len(times)*99/100]
	mean, square := 0.0, 0.0
	for _, s := range sums {
		mean += s / float64(per) / batches
	}
	for _, s := range sums {
		d := s/float64(per) - mean
		square += d * d
	}
	const t19 = 2.093 // Student's t, 97.5 %, 19 degrees of freedom
	r.DelayError = t19 * math.Sqrt(square/(batches-1)/batches)
	return r, nil
}

// servers is a heap of the times at which each server becomes free; the first
// is the earliest.
type servers []float64

// replace gives the first server a new time.
func (s servers) replace(t float64) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if r := child + 1; r < len(s) && s[r] < s[child] {
			child = r
		}
		if s[child] >= t {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = t
}
