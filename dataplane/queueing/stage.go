package queueing

import (
	"math"
	"time"
)

// Stage measures the inputs of the model on a live stage, and the times to hold
// against it. The zero value is ready. It belongs to one goroutine; Add joins
// what several have measured.
type Stage struct {
	since       time.Time // when the measurement began
	lastArrival time.Time
	between     moments // times between arrivals, in seconds
	service     moments // services, in seconds
	wait        moments // waits before the service, in seconds
	arrivals    uint64
	skipped     uint64 // of the arrivals
}

// Reset begins a new measurement. The last arrival is kept, so that the first
// gap of the new one is measured.
func (s *Stage) Reset(now time.Time) {
	*s = Stage{since: now, lastArrival: s.lastArrival}
}

// Arrive counts an arrival.
func (s *Stage) Arrive(now time.Time) {
	if s.since.IsZero() {
		s.since = now
	}
	s.arrivals++
	if !s.lastArrival.IsZero() {
		s.between.add(max(now.Sub(s.lastArrival), 0).Seconds())
	}
	s.lastArrival = now
}

// Skip counts n arrivals, the last of them at last, of which nothing else is
// measured: of many requests a sample is enough. Which ones must not depend on
// the requests.
func (s *Stage) Skip(n uint64, last time.Time) {
	if n == 0 {
		return
	}
	if s.since.IsZero() {
		s.since = last
	}
	s.arrivals += n
	s.skipped += n
	s.lastArrival = last
}

// Depart counts a departure: how long the request waited before its service,
// and how long the service took.
func (s *Stage) Depart(wait, service time.Duration) {
	s.wait.add(max(wait, 0).Seconds())
	s.service.add(max(service, 0).Seconds())
}

// Add joins what another goroutine has measured of the same stage, in the same
// time; nobody may be at work on other meanwhile. Gaps between arrivals are those
// within each part: arrivals that were dealt out by chance keep their CV, those
// that were dealt out in turn look more even.
func (s *Stage) Add(other *Stage) {
	if s.since.IsZero() || !other.since.IsZero() && other.since.Before(s.since) {
		s.since = other.since
	}
	if other.lastArrival.After(s.lastArrival) {
		s.lastArrival = other.lastArrival
	}
	s.arrivals += other.arrivals
	s.skipped += other.skipped
	s.between.join(other.between)
	s.service.join(other.service)
	s.wait.join(other.wait)
}

// Live is what a Stage has measured. Figures that need more samples than there
// are (two for a CV) are 0.
type Live struct {
	Lambda               float64 // arrivals per second
	Mu                   float64 // services per second of busy server
	ArrivalCV, ServiceCV float64
	Busy                 float64 // servers that were busy in the mean; over c it is rho
	Delay, Time          float64 // measured W_q and W, in seconds
	Arrivals, Departures uint64  // departures that were measured
}

// Read returns the figures since the measurement began.
func (s *Stage) Read(now time.Time) Live {
	l := Live{
		ArrivalCV:  s.between.cv(),
		ServiceCV:  s.service.cv(),
		Delay:      s.wait.mean,
		Time:       s.wait.mean + s.service.mean,
		Arrivals:   s.arrivals,
		Departures: uint64(s.service.n),
	}
	if elapsed := now.Sub(s.since).Seconds(); elapsed > 0 && !s.since.IsZero() {
		l.Lambda = float64(s.arrivals) / elapsed
		l.Busy = s.service.n * s.service.mean / elapsed
		if s.skipped < s.arrivals { // those that were skipped were busy as well
			l.Busy *= float64(s.arrivals) / float64(s.arrivals-s.skipped)
		}
	}
	if s.service.mean > 0 {
		l.Mu = 1 / s.service.mean
	}
	return l
}

// Queue returns the measured stage as a model's input, with c servers.
func (l Live) Queue(c int) Queue {
	return Queue{Lambda: l.Lambda, Mu: l.Mu, Servers: c, ArrivalCV: l.ArrivalCV, ServiceCV: l.ServiceCV}
}

// moments are a running mean and variance (Welford), which lose no digits
// where the mean is large beside the deviation.
type moments struct{ n, mean, m2 float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
}

// join adds the samples of o (Chan, Golub, LeVeque).
func (m *moments) join(o moments) {
	if o.n == 0 {
		return
	}
	n := m.n + o.n
	d := o.mean - m.mean
	m.m2 += o.m2 + d*d*m.n*o.n/n
	m.mean += d * o.n / n
	m.n = n
}

// cv returns the coefficient of variation, of the sample.
func (m *moments) cv() float64 {
	if m.n < 2 || m.mean <= 0 {
		return 0
	}
	return math.Sqrt(m.m2/(m.n-1)) / m.mean
}
