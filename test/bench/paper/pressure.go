//go:build linux

package main

import (
	"math"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// pressureSample is one proxy in front of an upstream with few places, at one
// offered utilisation of them.
type pressureSample struct {
	Variant string  `json:"variant"`
	Run     int     `json:"run"`
	Asked   float64 `json:"asked"` // U, offered: rate * service / places
	U       float64 `json:"u"`     // places that were taken, in the mean, as the upstream counts
	// Service is the upstream's mean service time, in seconds.
	Service float64        `json:"service_s"`
	Refused uint64         `json:"refused"` // by the upstream, as it counts
	Answers rig.RateResult `json:"answers"`
	// Propagation is what the gateway's histogram of T_bp got.
	Propagation []bucket `json:"propagation,omitempty"`
}

// variant is a way to stand in front of the few places.
type variant struct {
	name  string
	title string
	peer  string
	pool  int
	flags []string
}

// The upstream of Table 3: places, and the mean of exponential service times. It
// is long beside what the proxy adds, so that a place is taken for about as long
// there as here.
const (
	places      = 50
	serviceMean = 40 * time.Millisecond
)

// utilisations are those of Table 3.
var utilisations = []float64{0.70, 0.80, 0.85, 0.90, 0.95, 1.00}

// withPressure is the gateway as it is meant.
const withPressure = "headgate"

var variants = []variant{
	// All load comes from one address, which alone would get a part of the queue.
	{withPressure, "Headgate", headgate, places, []string{"--trusted-cidr", "127.0.0.0/8"}},
	{"headgate-open", "Headgate without back-pressure", headgate, 0, []string{"--pressure-theta", "1"}},
	{"nginx", "nginx", nginx, 0, nil},
	{"nginx-limited", "nginx, `max_conns`", nginx, places, nil},
}

// runTable3 measures each variant at each utilisation.
func (l *lab) runTable3() error {
	for run := range l.opt.failureRuns {
		for i := range variants {
			v := variants[(i+run)%len(variants)]
			p, ok := l.peer(v.peer)
			if !ok {
				continue
			}
			if err := l.pressure(v, p, run); err != nil {
				l.note("table 3, %s: %v", v.name, err)
			}
		}
	}
	return nil
}

func (l *lab) pressure(v variant, p peer, run int) error {
	if err := l.startUpstreams(1); err != nil {
		return err
	}
	seed := l.opt.seed + uint64(run)
	few := rig.Workload{Limit: places, Mean: serviceMean, Exponential: true, Seed: seed}
	if err := l.control(few); err != nil {
		return err
	}
	s := setup{workers: 1, routes: []route{{name: "work", prefix: "/", port: l.work, pool: v.pool}}, flags: v.flags}
	return l.with(p, s, func(*rig.Process) error {
		// What a service time really is, timers and all.
		load := rate{path: "/", rate: 0.5 * places / serviceMean.Seconds(), duration: l.opt.duration, conns: 1000, lazy: true, poisson: true, seed: seed}
		if _, err := l.stats(); err != nil {
			return err
		}
		if _, err := l.openLoop(load); err != nil {
			return err
		}
		calibrated, err := l.stats()
		if err != nil {
			return err
		}
		load.duration, load.warmup = 2*l.opt.duration, time.Second
		for _, u := range utilisations {
			sample := pressureSample{Variant: v.name, Run: run, Asked: u}
			load.rate = u * places / calibrated.Service
			load.seed = seed + uint64(1000*u)
			before, err := l.propagation(p)
			if err != nil {
				return err
			}
			if _, err := l.stats(); err != nil {
				return err
			}
			began := time.Now()
			if sample.Answers, err = l.openLoop(load); err != nil {
				return err
			}
			took := time.Since(began)
			stats, err := l.stats()
			if err != nil {
				return err
			}
			after, err := l.propagation(p)
			if err != nil {
				return err
			}
			// The loader is up to 2 s longer there than it sends.
			sample.U = stats.Busy / places * took.Seconds() / (load.duration + load.warmup).Seconds()
			sample.Service, sample.Refused, sample.Propagation = stats.Service, stats.Refused, since(after, before)
			l.result.Pressure = append(l.result.Pressure, sample)
			l.logf("table3 run %d %-14s U %.2f (%.3f measured)  errors %.2f %%  p99 %6.0f us  T_bp median %.1f ms of %d",
				run+1, v.name, u, sample.U, 100*sample.Answers.ErrorRate(), sample.Answers.P99, 1e3*quantile(sample.Propagation, 0.5), count(sample.Propagation))
		}
		return nil
	})
}

// propagation is the gateway's histogram of T_bp so far; nil of others.
func (l *lab) propagation(p peer) ([]bucket, error) {
	if p.name != headgate {
		return nil, nil
	}
	m, err := l.scrape()
	if err != nil {
		return nil, err
	}
	return m.histogram(metricPropagation, cluster("work")), nil
}

// erlangB is the part of Poisson arrivals that find all of c places taken when
// nobody waits; load is lambda times the service time.
func erlangB(load float64, c int) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = load * b / (float64(k) + load*b)
	}
	return b
}

// pressureRow is a variant at a utilisation over all runs.
type pressureRow struct {
	u           float64
	errors      float64 // part of all requests of all runs
	mean, p99   float64 // us, medians
	propagation []bucket
	runs        int
}

func (r *result) pressure(variant string, asked float64) pressureRow {
	var row pressureRow
	var all rig.RateResult
	var some []pressureSample
	for _, s := range r.Pressure {
		if s.Variant == variant && math.Abs(s.Asked-asked) < 1e-9 {
			some = append(some, s)
			all.Requests += s.Answers.Requests
			all.Errors += s.Answers.Errors
			all.Unsent += s.Answers.Unsent
			row.propagation = plus(row.propagation, s.Propagation)
		}
	}
	row.runs, row.errors = len(some), all.ErrorRate()
	row.u = rig.MedianOf(some, func(s pressureSample) float64 { return s.U })
	row.mean = rig.MedianOf(some, func(s pressureSample) float64 { return s.Answers.Mean })
	row.p99 = rig.MedianOf(some, func(s pressureSample) float64 { return s.Answers.P99 })
	return row
}
