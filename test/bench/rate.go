//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// rateSample is the latency at a constant rate, from the moment that each
// request was due. Durations are in microseconds.
type rateSample struct {
	PeakOf   string  `json:"peak_of"` // whose peak the rate is a share of
	Peer     string  `json:"peer"`
	Round    int     `json:"round"`
	Rate     float64 `json:"rate"`
	Achieved float64 `json:"achieved"`
	Requests uint64  `json:"requests"`
	Errors   uint64  `json:"errors"`
	Unsent   uint64  `json:"unsent"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	Max      float64 `json:"max_us"`
	CPU      float64 `json:"cpu_us_per_request"`
}

// peakShare is the share of a peer's peak at which latencies are compared.
const peakShare = 0.8

// runRates measures each fast peer at a share of its own peak, and the gateway
// at the same rates.
func (b *bench) runRates(rounds int) {
	for round := range rounds {
		for _, name := range fastPeers {
			owner, ok := b.peer(name)
			if !ok {
				continue
			}
			rate := peakShare * b.peak(owner)
			if rate == 0 {
				continue
			}
			pair := []string{name}
			if name != "headgate" {
				pair = append(pair, "headgate")
			}
			for i := range pair {
				p, ok := b.peer(pair[(i+round)%len(pair)])
				if !ok {
					continue
				}
				s, err := b.measureRate(p, rate)
				if err != nil {
					b.note("rate, %s: %v", p.name, err)
					continue
				}
				s.PeakOf, s.Round = name, round
				b.result.Rates = append(b.result.Rates, s)
				b.logf("rate         round %d %-14s at %6.0f/s (80%% of %s)  p50 %5.0f  p99 %6.0f  p99.9 %6.0f us  %d errors",
					round+1, p.name, rate, name, s.P50, s.P99, s.P999, s.Errors+s.Unsent)
			}
		}
	}
}

// peak is the median of the closed-loop scenario, which is run when it was not
// asked for.
func (b *bench) peak(p peer) float64 {
	if m := b.result.median("keep-64", p.name); m.PerSecond > 0 {
		return m.PerSecond
	}
	for _, sc := range scenarios {
		if sc.name == "keep-64" {
			s, err := b.measure(p, sc, 0)
			if err != nil {
				b.note("peak of %s: %v", p.name, err)
				return 0
			}
			b.result.Samples = append(b.result.Samples, s)
			return s.PerSecond
		}
	}
	return 0
}

func (b *bench) measureRate(p peer, rate float64) (rateSample, error) {
	var s rateSample
	err := b.with(p, 1, func(proc *rig.Process) error {
		before, err := proc.Use()
		if err != nil {
			return err
		}
		warmup := time.Second
		if s, err = b.openLoop("/", rate, warmup); err != nil {
			return err
		}
		after, err := proc.Use()
		if err != nil {
			return err
		}
		all := s.Requests + uint64(rate*warmup.Seconds())
		s.Peer, s.CPU = p.name, perRequest(after.CPU-before.CPU, all)
		return nil
	})
	return s, err
}

// openLoop drives the plain listener at a constant rate.
func (b *bench) openLoop(path string, rate float64, warmup time.Duration) (rateSample, error) {
	var s rateSample
	err := b.site.loader().Run(b.duration+warmup, &s, "rate", "-addr", rig.Loopback(b.site.http), "-host", hostName, "-path", path,
		"-conns", "64", "-rate", fmt.Sprintf("%.0f", rate), "-duration", b.duration.String(), "-warmup", warmup.String())
	return s, err
}
