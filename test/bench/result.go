//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/test/bench/rig"
)

// result is everything that a run measured.
type result struct {
	Time     string            `json:"time"`
	CPUs     int               `json:"cpus"`
	Kernel   string            `json:"kernel"`
	Duration string            `json:"duration"` // of each measurement
	Rounds   int               `json:"rounds"`
	Versions map[string]string `json:"versions"`
	Skipped  map[string]string `json:"skipped,omitempty"` // peers that are not here, and why
	Notes    []string          `json:"notes,omitempty"`   // what went wrong
	Load     [2]float64        `json:"load_average"`      // before and after
	Samples  []sample          `json:"samples"`
	Rates    []rateSample      `json:"rates,omitempty"`
	Memory   []memorySample    `json:"memory,omitempty"`
	Hung     []hungSample      `json:"hung,omitempty"`
}

// median returns the medians, value by value, of a peer's rounds of a scenario.
// Errors are added up. It is zero when there is no round.
func (r *result) median(scenario, peer string) sample {
	m := sample{Scenario: scenario, Peer: peer}
	var some []sample
	for _, s := range r.Samples {
		if s.Scenario == scenario && s.Peer == peer {
			some = append(some, s)
			m.Errors += s.Errors
			m.Requests += s.Requests
		}
	}
	of := func(value func(sample) float64) float64 { return rig.MedianOf(some, value) }
	m.Round = len(some)
	m.PerSecond = of(func(s sample) float64 { return s.PerSecond })
	m.P50 = of(func(s sample) float64 { return s.P50 })
	m.P99 = of(func(s sample) float64 { return s.P99 })
	m.P999 = of(func(s sample) float64 { return s.P999 })
	m.CPU = of(func(s sample) float64 { return s.CPU })
	m.RSS = of(func(s sample) float64 { return s.RSS })
	m.Load = of(func(s sample) float64 { return s.Load })
	return m
}

// rateMedian does the same for a peer at a share of a peer's peak.
func (r *result) rateMedian(peakOf, peer string) rateSample {
	m := rateSample{PeakOf: peakOf, Peer: peer}
	var some []rateSample
	for _, s := range r.Rates {
		if s.PeakOf == peakOf && s.Peer == peer {
			some = append(some, s)
			m.Errors += s.Errors
			m.Unsent += s.Unsent
			m.Requests += s.Requests
		}
	}
	of := func(value func(rateSample) float64) float64 { return rig.MedianOf(some, value) }
	m.Rate = of(func(s rateSample) float64 { return s.Rate })
	m.Achieved = of(func(s rateSample) float64 { return s.Achieved })
	m.P50 = of(func(s rateSample) float64 { return s.P50 })
	m.P99 = of(func(s rateSample) float64 { return s.P99 })
	m.P999 = of(func(s rateSample) float64 { return s.P999 })
	m.Max = of(func(s rateSample) float64 { return s.Max })
	m.CPU = of(func(s rateSample) float64 { return s.CPU })
	return m
}

// write stores the result as bench.json and bench.md.
func (r *result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.md"), []byte(r.markdown()), 0o644)
}
