//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/dataplane/queueing"
	"github.com/headgate/headgate/test/bench/rig"
)

// blocks are all tables, in the order of the page. One whose experiment was
// quick says so.
func (r *result) blocks() []block {
	blocks := []block{
		{"setup", "What was measured", r.setupText()},
		{"verdicts", "What should be shown", r.verdictTable()},
		{"table1", "Table 1: throughput and latency at 80 % of the baseline's peak", r.table1()},
		{"levels", "The five load levels", r.levelTable()},
		{"table2", "Table 2: scaling", r.table2()},
		{"table3", "Table 3: back-pressure", r.table3()},
		{"table4", "Table 4: memory", r.table4()},
		{"storm", "5.5: the timeout storm", r.stormTable()},
		{"exhaustion", "5.5: an exhausted pool", r.exhaustionTable()},
	}
	for i, b := range blocks {
		name := b.name
		if name == "levels" {
			name = "table1"
		}
		if r.Measured[name].Quick {
			blocks[i].text = quickMark + "\n" + b.text
		}
	}
	return blocks
}

const quickMark = "**From a quick run: to see that it works, not to cite.**\n"

const nothing = "Not measured.\n"

func (r *result) setupText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs, Linux %s. The tables have medians over the runs. The load average is that of the machine, before the run of the program and after it.\n\n",
		r.CPUs, r.Kernel)
	b.WriteString("| experiment | measured | runs, basic length | seed | load average | quick |\n| --- | --- | ---: | ---: | ---: | --- |\n")
	for _, e := range experiments {
		c, ok := r.Measured[e.name]
		if !ok {
			continue
		}
		quick := "no"
		if c.Quick {
			quick = "**yes: not to cite**"
		}
		row(&b, e.title, c.Time, fmt.Sprintf("%d of %s", c.Runs, c.Duration), fmt.Sprint(c.Seed), fmt.Sprintf("%.2f, %.2f", c.Load[0], c.Load[1]), quick)
	}
	b.WriteString("\n| proxy | version |\n| --- | --- |\n")
	for _, p := range peers {
		if v, ok := r.Versions[p.name]; ok {
			fmt.Fprintf(&b, "| %s | %s |\n", p.title, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&b, "\nSkipped: %s (%s).\n", title(name), r.Skipped[name])
	}
	if notes := r.notes(); len(notes) > 0 {
		fmt.Fprintf(&b, "\n%d measurements went wrong: see the end of the tables.\n", len(notes))
	}
	return b.String()
}

// notes are what went wrong, in the order of the experiments.
func (r *result) notes() []string {
	var all []string
	for _, e := range experiments {
		all = append(all, r.Measured[e.name].Notes...)
	}
	return all
}

// row writes a row of a table.
func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// head writes the first two rows of a table; all columns but the first are
// numbers.
func head(b *strings.Builder, cells ...string) {
	row(b, cells...)
	b.WriteString("| ---")
	b.WriteString(strings.Repeat(" | ---:", len(cells)-1))
	b.WriteString(" |\n")
}

func num(format string, v float64) string { return fmt.Sprintf(format, v) }

// millis shows microseconds as milliseconds.
func millis(us float64) string {
	switch ms := us / 1000; {
	case us == 0:
		return "-"
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

// percent shows a part of 1.
func percent(v float64) string { return fmt.Sprintf("%.2f", 100*v) }

// times shows a ratio; empty when there is nothing to divide by.
func times(v, by float64) string {
	if by == 0 || v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v/by)
}

// table1 has the paper's columns, then ours: the baselines and the gateway at
// the same rates.
func (r *result) table1() string {
	if len(r.Levels) == 0 {
		return nothing
	}
	var b strings.Builder
	for _, of := range []string{baseline, apache} {
		base, runs := r.level(of, tableLevel, of)
		if runs == 0 {
			continue
		}
		own, _ := r.level(of, tableLevel, headgate)
		names := []string{of, headgate}
		columns := []levelSample{base, own}
		if tuned, n := r.level(of, tableLevel, nginx); n > 0 {
			names, columns = append(names, nginx), append(columns, tuned)
		}
		fmt.Fprintf(&b, "At %.0f requests per second, 80 %% of the peak of %s:\n\n", base.Answers.Rate, title(of))
		cells := []string{"", "paper: baseline", "paper: async", "ratio"}
		for _, name := range names {
			cells = append(cells, title(name))
		}
		head(&b, append(cells, "ratio of the first two")...)
		pub := published1
		for _, line := range []struct {
			what        string
			sync, async float64
			value       func(name string, s levelSample) float64
			format      func(float64) string
			more        bool // more is better
		}{
			{"peak, req/s", pub.sync.peak, pub.async.peak, func(name string, _ levelSample) float64 { return r.peak(name) }, func(v float64) string { return num("%.0f", v) }, true},
			{"P50, ms", pub.sync.p50, pub.async.p50, func(_ string, s levelSample) float64 { return s.Answers.P50 }, millis, false},
			{"P99, ms", pub.sync.p99, pub.async.p99, func(_ string, s levelSample) float64 { return s.Answers.P99 }, millis, false},
			{"P99.9, ms", pub.sync.p999, pub.async.p999, func(_ string, s levelSample) float64 { return s.Answers.P999 }, millis, false},
			{"CPU, %", pub.sync.cpu, pub.async.cpu, func(_ string, s levelSample) float64 { return s.CPU }, func(v float64) string { return num("%.1f", v) }, false},
			{"RSS, MB", pub.sync.rss, pub.async.rss, func(_ string, s levelSample) float64 { return s.RSS * 1.048576 }, func(v float64) string { return num("%.0f", v) }, false},
			{"errors, %", pub.sync.errors, pub.async.errors, func(_ string, s levelSample) float64 { return s.Answers.ErrorRate() }, percent, false},
		} {
			ratio := func(sync, async float64) string {
				if line.more {
					return times(async, sync)
				}
				return times(sync, async)
			}
			cells := []string{line.what, line.format(line.sync), line.format(line.async), ratio(line.sync, line.async)}
			var values []float64
			for i, name := range names {
				values = append(values, line.value(name, columns[i]))
				cells = append(cells, line.format(values[i]))
			}
			row(&b, append(cells, ratio(values[0], values[1]))...)
		}
		b.WriteString("\n")
	}
	b.WriteString("Peaks in a closed loop of 64 connections:\n\n")
	head(&b, "", "req/s", "CPU us/req", "CPU busy, %")
	for _, p := range peers {
		if v := r.peak(p.name); v > 0 {
			cpu := median(r.Peaks, func(s peakSample) bool { return s.Peer == p.name }, func(s peakSample) float64 { return s.CPU })
			row(&b, p.title, num("%.0f", v), num("%.1f", cpu), num("%.0f", v*cpu/1e4))
		}
	}
	b.WriteString("\nRSS adds up processes, and so counts what they share more than once.\n")
	return b.String()
}

func (r *result) levelTable() string {
	if len(r.Levels) == 0 {
		return nothing
	}
	var b strings.Builder
	head(&b, "load", "proxy", "req/s", "P50 ms", "P99 ms", "P99.9 ms", "CPU %", "errors %")
	for _, of := range []string{baseline, apache} {
		for _, level := range levels {
			for _, p := range peers {
				m, runs := r.level(of, level, p.name)
				if runs == 0 {
					continue
				}
				row(&b, fmt.Sprintf("%.0f %% of %s", 100*level, title(of)), p.title, num("%.0f", m.Answers.Rate),
					millis(m.Answers.P50), millis(m.Answers.P99), millis(m.Answers.P999), num("%.0f", m.CPU), percent(m.Answers.ErrorRate()))
			}
		}
	}
	return b.String()
}

// scale is a row of Table 2.
type scale struct {
	alone           bool
	peak, cpu, each float64
}

func (r *result) scale(workers int) (s scale, ok bool) {
	var some []scalingSample
	for _, one := range r.Scaling {
		if one.Workers == workers {
			some = append(some, one)
			s.alone = one.Alone
		}
	}
	s.peak = rig.MedianOf(some, func(s scalingSample) float64 { return s.PerSecond })
	s.cpu = rig.MedianOf(some, func(s scalingSample) float64 { return s.CPU })
	s.each = rig.MedianOf(some, func(s scalingSample) float64 { return s.CPUAtLevel })
	return s, len(some) > 0
}

func (r *result) table2() string {
	one, ok := r.scale(1)
	if !ok || one.each == 0 {
		return nothing
	}
	var b strings.Builder
	mu := 1e6 / one.each
	fmt.Fprintf(&b, "mu = %.0f requests per second and core: one over the %.1f us of CPU that a request takes with one worker at 80 %% of its peak (Eq. 3 without waiting).\n\n",
		mu, one.each)
	head(&b, "workers", "paper: peak", "paper: Eq. 2", "paper: efficiency %", "peak, req/s", "Eq. 2: c * mu", "efficiency %", "CPU us/req at the peak", "requests per CPU second, of one worker's %")
	for _, c := range []int{1, 2, 4, 8} {
		s, ok := r.scale(c)
		if !ok {
			continue
		}
		peak, bound, efficiency := "-", "-", "-"
		if p, ok := published2[c]; ok {
			peak, bound, efficiency = num("%.0f", p.peak), num("%.0f", p.bound), num("%.1f", 100*p.efficiency)
		}
		most, err := queueing.Capacity(mu, c)
		if err != nil {
			return err.Error() + "\n"
		}
		workers := fmt.Sprint(c)
		if !s.alone {
			workers += ", loader and upstream on the same CPUs"
		}
		row(&b, workers, peak, bound, efficiency, num("%.0f", s.peak), num("%.0f", most), num("%.1f", 100*s.peak/most), num("%.1f", s.cpu), num("%.0f", 100*one.cpu/s.cpu))
	}
	return b.String()
}

func (r *result) table3() string {
	if len(r.Pressure) == 0 {
		return nothing
	}
	var b strings.Builder
	head(&b, "U", "paper: T_bp median, ms", "paper: P99, ms", "paper: errors %", "T_bp median, ms", "P99, ms", "of", "errors %, Headgate", "without back-pressure", "nginx", "nginx, `max_conns`", "Erlang B")
	for _, u := range utilisations {
		pub := published3[u]
		median, p99 := "-", "-"
		if pub.median > 0 {
			median, p99 = num("%.1f", pub.median), num("%.1f", pub.p99)
		}
		own := r.pressure(withPressure, u)
		cells := []string{num("%.2f", u), median, p99, percent(pub.errors)}
		if n := count(own.propagation); n > 0 {
			cells = append(cells, num("%.2f", 1e3*quantile(own.propagation, 0.5)), num("%.2f", 1e3*quantile(own.propagation, 0.99)), fmt.Sprint(n))
		} else {
			cells = append(cells, "-", "-", "0")
		}
		for _, v := range variants {
			if got := r.pressure(v.name, u); got.runs > 0 {
				cells = append(cells, percent(got.errors))
			} else {
				cells = append(cells, "-")
			}
		}
		row(&b, append(cells, percent(erlangB(u*places, places)))...)
	}
	fmt.Fprintf(&b, "\nThe paper's baseline failed %s %% at 0.95.\n", percent(publishedBaselineErrors))
	b.WriteString("\nWhat waiting costs, mean and P99 in ms, and W by M/M/c (Eq. 7):\n\n")
	head(&b, "U", "counted beside Headgate", "Headgate", "without back-pressure", "nginx", "nginx, `max_conns`", "Eq. 7")
	for _, u := range utilisations {
		cells := []string{num("%.2f", u), num("%.3f", r.pressure(withPressure, u).u)}
		for _, v := range variants {
			got := r.pressure(v.name, u)
			cells = append(cells, millis(got.mean)+", "+millis(got.p99))
		}
		mu := 1 / r.service()
		predicted := "no bound"
		if w, err := queueing.ResponseTime(u*places*mu, mu, places); err == nil {
			predicted = millis(1e6 * w)
		}
		row(&b, append(cells, predicted)...)
	}
	return b.String()
}

// service is the upstream's mean service time of Table 3, in seconds.
func (r *result) service() float64 {
	return rig.MedianOf(r.Pressure, func(s pressureSample) float64 { return s.Service })
}

func (r *result) table4() string {
	if len(r.Memory) == 0 {
		return nothing
	}
	constants, ok := r.constants()
	var b strings.Builder
	if ok {
		fmt.Fprintf(&b, "Eq. 12 with M_base = %.1f MB, M_req = %.2f KB, M_thread = %.2f MB, from runs with %d and %d connections and from one with a second worker.\n\n",
			float64(constants.Base)/1e6, float64(constants.Request)/1e3, float64(constants.Thread)/1e6, calibrated[0], calibrated[1])
	}
	head(&b, "active connections", "paper: sync, MB", "paper: async, MB", "paper: Eq. 12, MB", "Headgate, MB", "Eq. 12, MB", "off by %", "nginx, tuned", "Apache, threads (proportional)", "Apache, processes (proportional)")
	for _, n := range activeCounts {
		pub := published4[n]
		connections := fmt.Sprint(n)
		if n == 9000 {
			connections += " (paper: 10000)"
		}
		cells := []string{connections, num("%.0f", pub.sync), num("%.0f", pub.async), num("%.1f", pub.model)}
		own, measured := r.memory(headgate, n)
		if measured && ok {
			model, err := constants.Async(own.Active, own.Workers)
			if err != nil {
				return err.Error() + "\n"
			}
			cells = append(cells, mb(own.RSS), num("%.1f", float64(model)/1e6), num("%+.1f", 100*(own.RSS*(1<<20)/float64(model)-1)))
		} else {
			cells = append(cells, "-", "-", "-")
		}
		for _, name := range []string{nginx, apache, prefork} {
			s, ok := r.memory(name, n)
			switch {
			case !ok:
				cells = append(cells, "-")
			case name == nginx:
				cells = append(cells, mb(s.RSS))
			default:
				cells = append(cells, mb(s.RSS)+" ("+mb(s.PSS)+")")
			}
		}
		row(&b, cells...)
	}
	return b.String()
}

// mb shows MiB as MB.
func mb(mib float64) string { return num("%.1f", mib*1.048576) }
