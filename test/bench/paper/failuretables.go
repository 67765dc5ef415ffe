//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/test/bench/rig"
)

// stormRow is a proxy in a storm over all runs: medians.
type stormRow struct {
	runs         int
	before, good float64 // per second
	p99, p99All  float64 // us
	errors       float64
	// Of the gateway: the deadline that Eq. 13 asks for, the last one, and when it
	// first came within a tenth, all in seconds; cycles are that time over the
	// upstream's mean. They are -1 when it did not in every run.
	want, last, converged, cycles float64
}

func (r *result) storm(name, peer string) stormRow {
	var some []stormSample
	for _, s := range r.Storm {
		if s.Storm == name && s.Peer == peer {
			some = append(some, s)
		}
	}
	of := func(value func(stormSample) float64) float64 { return rig.MedianOf(some, value) }
	row := stormRow{
		runs:   len(some),
		before: of(func(s stormSample) float64 { return s.Before.Achieved }),
		good:   of(func(s stormSample) float64 { return s.During.Achieved }),
		p99:    of(func(s stormSample) float64 { return s.During.P99 }),
		p99All: of(func(s stormSample) float64 { return s.During.P99All }),
		errors: of(func(s stormSample) float64 { return s.During.ErrorRate() }),
		want:   of(func(s stormSample) float64 { return beta * s.Mean }),
		last: of(func(s stormSample) float64 {
			if len(s.Deadlines) == 0 {
				return 0
			}
			return s.Deadlines[len(s.Deadlines)-1].Timeout
		}),
		converged: of(func(s stormSample) float64 { return converged(s.Deadlines, beta*s.Mean) }),
	}
	row.cycles = -1
	for _, s := range some {
		if converged(s.Deadlines, beta*s.Mean) < 0 {
			row.converged = -1
		}
	}
	if row.converged >= 0 && row.want > 0 {
		row.cycles = row.converged / (row.want / beta)
	}
	return row
}

func (r *result) stormTable() string {
	if len(r.Storm) == 0 {
		return nothing
	}
	var b strings.Builder
	for _, st := range storms {
		fmt.Fprintf(&b, "At %d requests per second, %s:\n\n", stormRate, st.title)
		head(&b, "", "good/s before", "good/s in the storm", "of before, %", "P99 of good answers, ms", "P99 of all answers, ms", "errors %")
		for _, p := range peers {
			s := r.storm(st.name, p.name)
			if s.runs == 0 {
				continue
			}
			row(&b, p.title, num("%.0f", s.before), num("%.0f", s.good), num("%.0f", 100*s.good/s.before), millis(s.p99), millis(s.p99All), percent(s.errors))
		}
		if own := r.storm(st.name, headgate); own.runs > 0 {
			fmt.Fprintf(&b, "\nThe gateway's deadline at the end: %.0f ms", 1e3*own.last)
			if st.slow == slowTime {
				fmt.Fprintf(&b, "; 2.5 times the upstream's new mean: %.0f ms", 1e3*own.want)
				if own.converged >= 0 {
					fmt.Fprintf(&b, ". It came within a tenth of that after %.0f ms, %.1f cycles", 1e3*own.converged, own.cycles)
				} else {
					b.WriteString(". It did not come within a tenth of that in every run")
				}
			}
			b.WriteString(".\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("The paper: a deadline of 280 ms within 8 cycles, 67 % of the throughput, a P99 of 294 ms; the baseline at 0 after 12 s.\n")
	return b.String()
}

// exhaustionRow is a proxy with an exhausted pool over all runs: medians.
type exhaustionRow struct {
	runs           int
	p99Before, p99 float64 // us
	calm, waiting  float64 // p99 in us, without and with those that wait; 0 where none does
	heeded         float64 // p99 in us; 0 where nobody is told when to come again
	past           float64 // p99 in us, past the proxy
	errors         float64
	rssBefore, rss float64 // MiB
	recovery       float64 // seconds; negative when not in every run
	refused        float64
}

func (r *result) exhaustion(peer string) exhaustionRow {
	var some []exhaustionSample
	for _, s := range r.Exhaustion {
		if s.Peer == peer {
			some = append(some, s)
		}
	}
	of := func(value func(exhaustionSample) float64) float64 { return rig.MedianOf(some, value) }
	row := exhaustionRow{
		runs:      len(some),
		p99Before: of(func(s exhaustionSample) float64 { return s.Undisturbed.P99 }),
		p99:       of(func(s exhaustionSample) float64 { return s.Disturbed.P99 }),
		past:      of(func(s exhaustionSample) float64 { return s.Past.P99 }),
		heeded:    of(func(s exhaustionSample) float64 { return s.heeded().P99 }),
		errors:    of(func(s exhaustionSample) float64 { return s.Disturbed.ErrorRate() }),
		rssBefore: of(func(s exhaustionSample) float64 { return s.RSSBefore }),
		rss:       of(func(s exhaustionSample) float64 { return s.RSS }),
		recovery:  of(func(s exhaustionSample) float64 { return s.Recovery }),
		refused:   of(func(s exhaustionSample) float64 { return float64(s.Refused) }),
	}
	var pairs []waitingPair
	for _, s := range some {
		pairs = append(pairs, s.Waiting...)
		if s.Recovery < 0 {
			row.recovery = -1
		}
	}
	row.calm = rig.MedianOf(pairs, func(p waitingPair) float64 { return p.Undisturbed.P99 })
	row.waiting = rig.MedianOf(pairs, func(p waitingPair) float64 { return p.Beside.P99 })
	return row
}

func (r *result) exhaustionTable() string {
	if len(r.Exhaustion) == 0 {
		return nothing
	}
	var b strings.Builder
	head(&b, "", "healthy P99, ms", "beside 5,000 that wait, ms", "undisturbed, ms", "beside 5,000 that come again, ms", "past the proxy, ms", "when they heed Retry-After, ms", "its errors %", "RSS before, MB", "RSS, MB", "refused of the hung", "recovery, s")
	for _, p := range peers {
		e := r.exhaustion(p.name)
		if e.runs == 0 {
			continue
		}
		recovery := "not in 5 s"
		if e.recovery >= 0 {
			recovery = num("%.1f", e.recovery)
		}
		row(&b, p.title, millis(e.calm), millis(e.waiting), millis(e.p99Before), millis(e.p99), millis(e.past), millis(e.heeded), percent(e.errors), mb(e.rssBefore), mb(e.rss), num("%.0f", e.refused), recovery)
	}
	return b.String()
}

// verdict is what should be shown, and whether it was.
type verdict struct {
	claim, paper, here string
	met                bool
}

// verdicts compares with what the project set out to show. What was not measured
// is left out.
func (r *result) verdicts() []verdict {
	var vs []verdict
	say := func(experiment, claim, paper, here string, met bool) {
		if r.Measured[experiment].Quick {
			here += " (quick)"
		}
		vs = append(vs, verdict{claim, paper, here, met})
	}
	if own, base := r.peak(headgate), r.peak(baseline); own > 0 && base > 0 {
		say("table1", "peak, times that of the baseline: at least 3.8", "3.8", num("%.2f", own/base), own >= 3.8*base)
	}
	if own, n := r.level(baseline, tableLevel, headgate); n > 0 {
		if base, m := r.level(baseline, tableLevel, baseline); m > 0 {
			say("table1", "P99 at 80 % of the baseline's peak, part of the baseline's: at most 1", "0.26", num("%.2f", own.Answers.P99/base.Answers.P99), own.Answers.P99 <= base.Answers.P99)
		}
	}
	if p := r.pressure(withPressure, 0.95); p.runs > 0 {
		say("table3", "errors at U = 0.95: at most 0.31 %", "0.31 %", percent(p.errors)+" %", p.errors <= 0.0031)
	}
	var propagation []bucket
	for _, s := range r.Pressure {
		if s.Variant == withPressure && s.Asked >= 0.85 {
			propagation = plus(propagation, s.Propagation)
		}
	}
	if count(propagation) > 0 {
		median, p99 := 1e3*quantile(propagation, 0.5), 1e3*quantile(propagation, 0.99)
		say("table3", "T_bp, median: at most 5 ms", "4.2 to 5.1 ms", num("%.2f ms", median), median <= 5)
		say("table3", "T_bp, P99: at most 13 ms", "9.1 to 13.4 ms", num("%.2f ms", p99), p99 <= 13)
	}
	if s := r.storm("slow", headgate); s.runs > 0 {
		here := num("%.1f", s.cycles)
		if s.cycles < 0 {
			here = "not in every run"
		}
		say("storm", "storm: the deadline within a tenth of 2.5 times the new mean, in cycles: at most 8", "8", here, s.cycles >= 0 && s.cycles <= 8)
		say("storm", "storm: throughput, part of that before: at least 67 %", "67 %", num("%.0f %%", 100*s.good/s.before), s.good >= 0.67*s.before)
		say("storm", "storm: P99 of all answers, times the deadline: at most 1.2", "1.05", num("%.2f", s.p99All/1e6/s.last), s.p99All/1e6 <= 1.2*s.last)
	}
	if e := r.exhaustion(headgate); e.runs > 0 {
		if e.waiting > 0 {
			say("exhaustion", "exhausted pool: P99 of another upstream beside 5,000 requests, times that undisturbed: at most 1.1", "-", num("%.2f", e.waiting/e.calm), e.waiting <= 1.1*e.calm)
		}
		if e.heeded > 0 {
			say("exhaustion", "the same, most are refused and heed Retry-After: at most 1.1", "-", num("%.2f", e.heeded/e.p99Before), e.heeded <= 1.1*e.p99Before)
		}
		say("exhaustion", "the same, most are refused and come again each second: at most 1.1", "-", num("%.2f", e.p99/e.p99Before), e.p99 <= 1.1*e.p99Before)
		recovery := "not in 5 s"
		if e.recovery >= 0 {
			recovery = num("%.1f s", e.recovery)
		}
		say("exhaustion", "exhausted pool: recovery: at most 2 s", "-", recovery, e.recovery >= 0 && e.recovery <= 2)
		// 16 KiB a client is the read buffer, were each to keep one.
		bound := e.rssBefore + hungRequests*16.0/1024
		say("exhaustion", "exhausted pool: RSS beside 5,000 hung requests: at most 16 KiB for each", "-", mb(e.rss)+" MB", e.rss <= bound)
	}
	if c, ok := r.constants(); ok {
		worst, n := 0.0, 0
		for _, active := range activeCounts {
			s, measured := r.memory(headgate, active)
			if !measured {
				continue
			}
			if model, err := c.Async(s.Active, s.Workers); err == nil && model > 0 {
				off := s.RSS*(1<<20)/float64(model) - 1
				worst = max(worst, off, -off)
				n++
			}
		}
		if n > 0 {
			say("table4", "memory: deviation from Eq. 12: below 2 %", "below 2 %", num("%.1f %%", 100*worst), worst < 0.02)
		}
	}
	return vs
}

func (r *result) verdictTable() string {
	vs := r.verdicts()
	if len(vs) == 0 {
		return nothing
	}
	var b strings.Builder
	b.WriteString("| what | paper | here | met |\n| --- | ---: | ---: | --- |\n")
	for _, v := range vs {
		met := "yes"
		if !v.met {
			met = "**no**"
		}
		row(&b, v.claim, v.paper, v.here, met)
	}
	return b.String()
}
