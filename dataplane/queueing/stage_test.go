package queueing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const ms = time.Millisecond

func TestStage(t *testing.T) {
	var s Stage
	s.Reset(epoch)
	// Gaps of 10, 30, 10, 30 ms: mean 20, deviation of the sample sqrt(400/3).
	for _, at := range []time.Duration{0, 10 * ms, 40 * ms, 50 * ms, 80 * ms} {
		s.Arrive(epoch.Add(at))
	}
	// Services 2, 4, 6 ms, waits 0, 3, 6.
	for i := range 3 {
		s.Depart(time.Duration(3*i)*ms, time.Duration(2+2*i)*ms)
	}
	got := s.Read(epoch.Add(100 * ms))
	near(t, "lambda", got.Lambda, 50, 1e-9)
	near(t, "mu", got.Mu, 250, 1e-9)
	near(t, "busy", got.Busy, 0.12, 1e-9) // 12 ms of 100
	near(t, "CV of arrivals", got.ArrivalCV, math.Sqrt(400.0/3)/20, 1e-9)
	near(t, "CV of services", got.ServiceCV, 0.5, 1e-9)
	near(t, "delay", got.Delay, 0.003, 1e-9)
	near(t, "time", got.Time, 0.007, 1e-9)
	if got.Arrivals != 5 || got.Departures != 3 {
		t.Errorf("%+v", got)
	}
	if q := got.Queue(4); q != (Queue{got.Lambda, got.Mu, 4, got.ArrivalCV, got.ServiceCV}) {
		t.Errorf("queue %+v", q)
	}
	// A new measurement keeps the last arrival, and nothing else.
	s.Reset(epoch.Add(100 * ms))
	s.Arrive(epoch.Add(110 * ms))
	s.Arrive(epoch.Add(140 * ms))
	got = s.Read(epoch.Add(200 * ms))
	near(t, "lambda after Reset", got.Lambda, 20, 1e-9)
	if got.Mu != 0 || got.ArrivalCV != 0 || got.Departures != 0 { // both gaps are 30 ms
		t.Errorf("after Reset: %+v", got)
	}
}

// Of many arrivals a sample is measured: rates are of all, times of the sample.
func TestStageSkip(t *testing.T) {
	var s Stage
	s.Reset(epoch)
	for i := range 100 {
		now := epoch.Add(time.Duration(i) * 10 * ms)
		if i%4 != 3 {
			s.Skip(1, now)
			continue
		}
		s.Arrive(now)
		s.Depart(0, 5*ms)
	}
	got := s.Read(epoch.Add(time.Second))
	near(t, "lambda", got.Lambda, 100, 1e-9)
	near(t, "busy", got.Busy, 0.5, 1e-9) // 100 of 5 ms in a second
	near(t, "mu", got.Mu, 200, 1e-9)
	near(t, "CV of arrivals", got.ArrivalCV, 0, 1e-9) // each gap is 10 ms, not 40
	if got.Arrivals != 100 || got.Departures != 25 {
		t.Errorf("%+v", got)
	}
	var only Stage
	only.Skip(0, epoch.Add(-time.Hour))
	only.Skip(1, epoch)
	if got := only.Read(epoch.Add(time.Second)); got.Lambda != 1 || got.Busy != 0 {
		t.Errorf("only skipped: %+v", got)
	}
	joined := s
	joined.Add(&only)
	if got := joined.Read(epoch.Add(time.Second)); got.Arrivals != 101 {
		t.Errorf("joined: %+v", got)
	}
}

func TestStageWithout(t *testing.T) {
	var s Stage
	if got := s.Read(epoch); got != (Live{}) {
		t.Errorf("nothing measured: %+v", got)
	}
	s.Arrive(epoch) // begins the measurement
	s.Arrive(epoch.Add(-time.Second))
	s.Depart(-1, -1)
	got := s.Read(epoch.Add(time.Second))
	if got.Lambda != 2 || got.Time != 0 || got.Mu != 0 || got.ArrivalCV != 0 {
		t.Errorf("a clock that goes back: %+v", got)
	}
}

// TestStageAdd: what loops measure apart is joined as if one had measured it.
func TestStageAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var parts [3]Stage
	var whole Stage
	whole.Reset(epoch)
	for i := range parts {
		parts[i].Reset(epoch.Add(time.Duration(i)))
	}
	now := epoch
	for i := range 3000 {
		now = now.Add(time.Duration(r.ExpFloat64() * float64(ms)))
		wait, service := time.Duration(r.IntN(1e6)), time.Duration(r.ExpFloat64()*1e6)
		whole.Arrive(now)
		whole.Depart(wait, service)
		parts[i%3].Arrive(now)
		parts[i%3].Depart(wait, service)
	}
	var sum Stage
	for i := range parts {
		sum.Add(&parts[i])
	}
	got, want := sum.Read(now), whole.Read(now)
	near(t, "lambda", got.Lambda, want.Lambda, 1e-12)
	near(t, "mu", got.Mu, want.Mu, 1e-9)
	near(t, "CV of services", got.ServiceCV, want.ServiceCV, 1e-9)
	near(t, "time", got.Time, want.Time, 1e-9)
	if got.Arrivals != 3000 || got.Departures != 3000 {
		t.Errorf("%+v", got)
	}
	// Dealt out in turn a Poisson stream is Erlang-3 in each part.
	near(t, "CV of arrivals", got.ArrivalCV, math.Sqrt(1.0/3), 0.05)
}

func TestStageAllocs(t *testing.T) {
	var s Stage
	now := epoch
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(ms)
		s.Arrive(now)
		s.Depart(ms, ms)
		s.Read(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStage(b *testing.B) {
	var s Stage
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(ms)
		s.Arrive(now)
		s.Depart(ms, ms)
	}
}
