//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// peakSample is the throughput of a closed loop.
type peakSample struct {
	Peer      string  `json:"peer"`
	Run       int     `json:"run"`
	PerSecond float64 `json:"per_second"`
	CPU       float64 `json:"cpu_us_per_request"`
	Errors    uint64  `json:"errors"`
}

// levelSample is a peer at a share of a baseline's peak.
type levelSample struct {
	Baseline string         `json:"baseline"`
	Level    float64        `json:"level"`
	Peer     string         `json:"peer"`
	Run      int            `json:"run"`
	Answers  rig.RateResult `json:"answers"`
	CPU      float64        `json:"cpu_percent"` // of one CPU
	RSS      float64        `json:"rss_mib"`
}

// levels are the paper's, as shares of the baseline's peak (5.1).
var levels = []float64{0.2, 0.4, 0.6, 0.8, 0.95}

// tableLevel is the one of Table 1.
const tableLevel = 0.8

// conns is how many connections the loads of Tables 1 and 2 use.
const conns = 64

// plain is one worker in front of the fast upstream.
func (l *lab) plain(workers int) setup {
	return setup{workers: workers, routes: []route{{name: "fast", prefix: "/", port: l.fast}}}
}

// runTable1 measures peaks, then each peer at the levels of the baselines: all
// of them at those of nginx with its defaults, and Apache and the gateway at
// those of Apache, which may have less.
func (l *lab) runTable1() error {
	for run := range l.opt.runs {
		for i := range l.peers {
			p := l.peers[(i+run)%len(l.peers)] // none is always the first
			s, err := l.peak(p, 1)
			if err != nil {
				l.note("peak, %s: %v", p.name, err)
				continue
			}
			s.Run = run
			l.result.Peaks = append(l.result.Peaks, s)
			l.logf("peak   run %d %-14s %8.0f req/s %6.1f us CPU", run+1, p.name, s.PerSecond, s.CPU)
		}
	}
	for run := range l.opt.runs {
		for _, of := range []struct {
			baseline string
			peers    []peer
		}{
			{baseline, l.some(headgate, nginx, baseline)},
			{apache, l.some(headgate, apache)},
		} {
			peak := l.result.peak(of.baseline)
			if peak == 0 {
				continue
			}
			for _, level := range levels {
				for i := range of.peers {
					p := of.peers[(i+run)%len(of.peers)]
					s, err := l.level(p, level*peak)
					if err != nil {
						l.note("%.0f %% of %s, %s: %v", 100*level, of.baseline, p.name, err)
						continue
					}
					s.Baseline, s.Level, s.Run = of.baseline, level, run
					l.result.Levels = append(l.result.Levels, s)
					l.logf("level  run %d %2.0f %% of %-14s %-14s p50 %6.0f p99 %7.0f us  CPU %3.0f %%  errors %.3f %%",
						run+1, 100*level, of.baseline, p.name, s.Answers.P50, s.Answers.P99, s.CPU, 100*s.Answers.ErrorRate())
				}
			}
		}
	}
	return nil
}

// peak measures the most that a peer does in a closed loop.
func (l *lab) peak(p peer, workers int) (peakSample, error) {
	s := peakSample{Peer: p.name}
	err := l.with(p, l.plain(workers), func(proc *rig.Process) error {
		url := "http://" + rig.Loopback(l.ports.http) + "/"
		if _, err := l.load.Wrk(url, l.load.Threads(), conns, time.Second); err != nil { // warm-up
			return err
		}
		before, err := proc.Use()
		if err != nil {
			return err
		}
		r, err := l.load.Wrk(url, l.load.Threads(), conns, l.opt.duration)
		if err != nil {
			return err
		}
		after, err := proc.Use()
		if err != nil {
			return err
		}
		if r.Requests == 0 {
			return fmt.Errorf("nothing was answered, %d errors", r.Errors)
		}
		s.PerSecond, s.Errors = float64(r.Requests)/r.Micros*1e6, r.Errors
		s.CPU = float64((after.CPU - before.CPU).Microseconds()) / float64(r.Requests)
		return nil
	})
	return s, err
}

// level measures a peer at a rate.
func (l *lab) level(p peer, perSecond float64) (levelSample, error) {
	s := levelSample{Peer: p.name}
	err := l.with(p, l.plain(1), func(proc *rig.Process) error {
		before, err := proc.Use()
		if err != nil {
			return err
		}
		began := time.Now()
		if s.Answers, err = l.openLoop(rate{path: "/", rate: perSecond, duration: l.opt.duration, warmup: time.Second, conns: conns}); err != nil {
			return err
		}
		took := time.Since(began)
		after, err := proc.Use()
		if err != nil {
			return err
		}
		s.CPU = 100 * (after.CPU - before.CPU).Seconds() / took.Seconds()
		s.RSS = mib(after.RSS)
		return nil
	})
	return s, err
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// peak is the median of a peer's peaks; 0 when there is none.
func (r *result) peak(name string) float64 {
	return median(r.Peaks, func(s peakSample) bool { return s.Peer == name }, func(s peakSample) float64 { return s.PerSecond })
}

// level is the median, value by value, of a peer's runs at a level; runs is how
// many there are.
func (r *result) level(of string, level float64, name string) (m levelSample, runs int) {
	var some []levelSample
	for _, s := range r.Levels {
		if s.Baseline == of && s.Level == level && s.Peer == name {
			some = append(some, s)
		}
	}
	value := func(f func(levelSample) float64) float64 { return rig.MedianOf(some, f) }
	m = levelSample{Baseline: of, Level: level, Peer: name}
	for _, s := range some {
		m.Answers.Requests += s.Answers.Requests
		m.Answers.Errors += s.Answers.Errors
		m.Answers.Unsent += s.Answers.Unsent
	}
	m.Answers.Rate = value(func(s levelSample) float64 { return s.Answers.Rate })
	m.Answers.Achieved = value(func(s levelSample) float64 { return s.Answers.Achieved })
	m.Answers.P50 = value(func(s levelSample) float64 { return s.Answers.P50 })
	m.Answers.P99 = value(func(s levelSample) float64 { return s.Answers.P99 })
	m.Answers.P999 = value(func(s levelSample) float64 { return s.Answers.P999 })
	m.CPU = value(func(s levelSample) float64 { return s.CPU })
	m.RSS = value(func(s levelSample) float64 { return s.RSS })
	return m, len(some)
}

// scalingSample is the gateway's peak with a number of workers.
type scalingSample struct {
	Workers int `json:"workers"`
	Run     int `json:"run"`
	// Alone tells that the proxy's CPUs were its own.
	Alone     bool    `json:"alone"`
	PerSecond float64 `json:"per_second"`
	CPU       float64 `json:"cpu_us_per_request"`
	// CPUAtLevel is the CPU time per request at 80 % of the peak of one worker;
	// of the rows with one worker only.
	CPUAtLevel float64 `json:"cpu_us_per_request_at_80_percent,omitempty"`
}

// workerCounts are those of Table 2 that a machine can tell something about: the
// paper's cores, from 1 on, as long as there are as many CPUs.
func workerCounts(cpus int) []int {
	counts := []int{1}
	for _, c := range []int{2, 4, 8} {
		if c <= cpus {
			counts = append(counts, c)
		}
	}
	return counts
}

// runTable2 measures the gateway's peak with several numbers of workers.
func (l *lab) runTable2() error {
	p, ok := l.peer(headgate)
	if !ok {
		return nil
	}
	for run := range l.opt.runs {
		for _, workers := range workerCounts(l.cpus) {
			peak, err := l.peak(p, workers)
			if err != nil {
				return err
			}
			alone, _ := placement(l.cpus, workers)
			s := scalingSample{Workers: workers, Run: run, Alone: alone != nil, PerSecond: peak.PerSecond, CPU: peak.CPU}
			if workers == 1 {
				at, err := l.level(p, tableLevel*peak.PerSecond)
				if err != nil {
					return err
				}
				if at.Answers.Achieved > 0 {
					s.CPUAtLevel = at.CPU / 100 / at.Answers.Achieved * 1e6
				}
			}
			l.result.Scaling = append(l.result.Scaling, s)
			l.logf("scale  run %d %d workers %8.0f req/s %6.1f us CPU", run+1, workers, s.PerSecond, s.CPU)
		}
	}
	return nil
}
