//go:build linux

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/headgate/headgate/dataplane/queueing"
	"github.com/headgate/headgate/test/bench/rig"
)

// sample is a result with one line of each kind, and more where medians need it.
func sample() *result {
	answers := func(p99 float64, errors uint64) rig.RateResult {
		return rig.RateResult{Rate: 800, Achieved: 790, Requests: 1000 - errors, Errors: errors, P50: p99 / 10, P99: p99, P999: 2 * p99, P99All: p99}
	}
	heeded := answers(210, 0)
	bars := []bucket{{0.001, 1}, {0.005, 9}, {unbounded, 0}}
	return &result{
		CPUs: 2, Kernel: "6",
		Measured: map[string]conditions{
			"table1": {Time: "2026-01-02 03:04 UTC", Runs: 3, Duration: "2s", Seed: 1, Load: [2]float64{0.5, 1}},
			"table4": {Time: "2026-01-01 00:00 UTC", Runs: 1, Duration: "1s", Seed: 1, Quick: true, Notes: []string{"table 4, nginx with 100: lost"}},
		},
		Versions: map[string]string{headgate: "v1"}, Skipped: map[string]string{prefork: "apache2: not installed"},
		Peaks: []peakSample{
			{Peer: headgate, PerSecond: 5000}, {Peer: headgate, PerSecond: 3000}, {Peer: headgate, PerSecond: 4000},
			{Peer: baseline, PerSecond: 1000},
		},
		Levels: []levelSample{
			{Baseline: baseline, Level: 0.8, Peer: headgate, Answers: answers(500, 0), CPU: 20, RSS: 40},
			{Baseline: baseline, Level: 0.8, Peer: headgate, Run: 1, Answers: answers(700, 0), CPU: 30, RSS: 40},
			{Baseline: baseline, Level: 0.8, Peer: baseline, Answers: answers(6000, 20), CPU: 80, RSS: 20},
		},
		Scaling: []scalingSample{
			{Workers: 1, Alone: true, PerSecond: 76_000, CPU: 12.5, CPUAtLevel: 12.5},
			{Workers: 2, PerSecond: 80_000, CPU: 10},
		},
		Pressure: []pressureSample{
			{Variant: withPressure, Asked: 0.95, U: 0.94, Service: 0.04, Answers: answers(90_000, 1), Propagation: bars},
			{Variant: withPressure, Run: 1, Asked: 0.95, U: 0.96, Service: 0.04, Answers: answers(70_000, 2), Propagation: bars},
			{Variant: "nginx", Asked: 0.95, U: 0.9, Service: 0.04, Answers: answers(60_000, 80)},
		},
		Memory: []memorySample{
			{Peer: headgate, Workers: 1, RSS: 38, Calibration: true},
			{Peer: headgate, Workers: 2, RSS: 39, Calibration: true},
			{Peer: headgate, Workers: 1, Wanted: 2500, Active: 2500, RSS: 45, Calibration: true},
			{Peer: headgate, Workers: 1, Wanted: 7500, Active: 7500, RSS: 65, Calibration: true},
			{Peer: headgate, Workers: 1, Wanted: 5000, Active: 5000, RSS: 55, PSS: 54},
			{Peer: apache, Workers: 1, Wanted: 5000, Active: 5000, RSS: 500, PSS: 400},
		},
		Storm: []stormSample{{Storm: "slow", Peer: headgate, Before: answers(11_000, 0), During: answers(300_000, 50), Mean: 0.112, Length: 8,
			Deadlines: []deadline{{0, 0.05}, {0.56, 0.27}, {7, 0.28}}}},
		Exhaustion: []exhaustionSample{{Peer: headgate, Undisturbed: answers(200, 0), Disturbed: answers(250, 0),
			Waiting: []waitingPair{{answers(200, 0), answers(205, 0)}, {answers(220, 0), answers(230, 0)}, {answers(210, 0), answers(220, 0)}}, Heeded: &heeded, Past: answers(150, 0), RSSBefore: 40, RSS: 50, Refused: 9, Recovery: 0.4}},
	}
}

func TestSamplesAreKept(t *testing.T) {
	r := sample()
	data, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) {
		t.Errorf("%+v\nwant %+v", got, r)
	}
	for _, bad := range []string{"x", `{"kind":"other","value":{}}`, `{"kind":"peak","value":[]}`} {
		if _, err := decode([]byte(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestMedians(t *testing.T) {
	r := sample()
	if got := r.peak(headgate); got != 4000 {
		t.Errorf("peak %v", got)
	}
	m, runs := r.level(baseline, 0.8, headgate)
	if runs != 2 || m.Answers.P99 != 600 || m.CPU != 25 || m.Answers.Requests != 2000 {
		t.Errorf("%d runs: %+v", runs, m)
	}
	p := r.pressure(withPressure, 0.95)
	if p.runs != 2 || p.p99 != 80_000 || math.Abs(p.errors-0.0015) > 1e-12 || count(p.propagation) != 20 {
		t.Errorf("%+v", p)
	}
	s := r.storm("slow", headgate)
	if s.converged != 0.56 || math.Abs(s.cycles-5) > 1e-9 || s.last != 0.28 {
		t.Errorf("%+v", s)
	}
}

func TestConstants(t *testing.T) {
	r := sample()
	const mib = 1 << 20
	// (65-45)/5000 for each connection; what is left of 45, less one worker.
	each := 20.0 * mib / 5000
	base := int64(45*mib-each*2500) - mib
	if m, ok := r.constants(); !ok || m != (queueing.Memory{Base: base, Request: int64(each), Thread: mib}) {
		t.Errorf("%+v, %v", m, ok)
	}
	r.Memory = r.Memory[:2]
	if _, ok := r.constants(); ok {
		t.Error("constants without connections")
	}
}

func TestTables(t *testing.T) {
	r := sample()
	text := map[string]string{}
	for _, b := range r.blocks() {
		text[b.name] = b.text
	}
	wants(t, text["setup"], "| Headgate | v1 |", "\n1 measurements went wrong",
		"| Table 1 | 2026-01-02 03:04 UTC | 3 of 2s | 1 | 0.50, 1.00 | no |\n",
		"| Table 4 | 2026-01-01 00:00 UTC | 1 of 1s | 1 | 0.00, 0.00 | **yes: not to cite** |\n", "Skipped: Apache httpd, a process each (apache2: not installed).")
	wants(t, text["verdicts"],
		"| peak, times that of the baseline: at least 3.8 | 3.8 | 4.00 | yes |",
		"| errors at U = 0.95: at most 0.31 % | 0.31 % | 0.15 % | yes |",
		"| storm: P99 of all answers, times the deadline: at most 1.2 | 1.05 | 1.07 | yes |",
		"beside 5,000 requests, times that undisturbed: at most 1.1 | - | 1.05 | yes |",
		"| the same, most are refused and heed Retry-After: at most 1.1 | - | 1.05 | yes |",
		"| the same, most are refused and come again each second: at most 1.1 | - | 1.25 | **no** |")
	wants(t, text["table1"],
		"At 800 requests per second, 80 % of the peak of nginx, defaults:",
		"| P99, ms | 69.4 | 18.3 | 3.79 | 6.00 | 0.60 | 10.00 |",
		"| errors, % | 2.30 | 0.01 | 230.00 | 2.00 | 0.00 | - |")
	wants(t, text["levels"], "| 80 % of nginx, defaults | Headgate | 800 | 0.06 | 0.60 | 1.20 | 25 | 0.00 |")
	wants(t, text["table2"],
		"mu = 80000 requests per second",
		"| 1 | - | - | - | 76000 | 80000 | 95.0 | 12.5 | 100 |",
		"| 2, loader and upstream on the same CPUs | 54800 | 56200 | 97.5 | 80000 | 160000 | 50.0 | 10.0 | 125 |")
	wants(t, text["table3"], "| 0.95 | 4.7 | 11.2 | 0.31 | 2.78 | 4.96 | 20 | 0.15 | - | 8.00 | - | 7.82 |", "| 1.00 | 5.1 |")
	wants(t, text["table4"], "| 5000 | 5416 | 276 | 276.0 | 57.7 |", "| 524.3 (419.4) | - |")
	wants(t, text["storm"], "| Headgate | 790 | 790 | 100 | 300 | 300 | 5.00 |", "It came within a tenth of that after 560 ms, 5.0 cycles.")
	wants(t, text["exhaustion"], "| Headgate | 0.21 | 0.22 | 0.20 | 0.25 | 0.15 | 0.21 | 0.00 | 41.9 | 52.4 | 9 | 0.4 |")
	for _, b := range (&result{}).blocks() {
		if b.name != "setup" && b.text != nothing {
			t.Errorf("%s of nothing:\n%s", b.name, b.text)
		}
	}
}

// What was quick says so where it is shown, and nothing else does.
func TestQuickIsToldWhereItIs(t *testing.T) {
	r := sample()
	for _, name := range []string{"table1", "table4"} {
		r.Measured = map[string]conditions{name: {Quick: true}}
		for _, b := range r.blocks() {
			want := b.name == name || name == "table1" && b.name == "levels"
			if got := strings.HasPrefix(b.text, quickMark+"\n"); got != want {
				t.Errorf("%s was quick, and %s says so: %v", name, b.name, got)
			}
			if b.name != "verdicts" {
				continue
			}
			for line := range strings.Lines(b.text) {
				of := ""
				switch {
				case strings.HasPrefix(line, "| memory"):
					of = "table4"
				case strings.HasPrefix(line, "| peak"), strings.HasPrefix(line, "| P99 at"):
					of = "table1"
				}
				if got := strings.Contains(line, "(quick)"); got != (of == name) {
					t.Errorf("%s was quick, and of it says so %v: %s", name, got, line)
				}
			}
		}
	}
}

// An experiment that is repeated alone is told with its own conditions; the
// others keep theirs, and what went wrong in them.
func TestConditionsOfKeptExperiments(t *testing.T) {
	last := sample()
	r := &result{Measured: map[string]conditions{"table1": {Notes: []string{"peak, nginx: lost"}}}}
	for _, e := range experiments {
		if e.name != "table1" {
			r.take(e, last)
		}
	}
	began := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	r.conclude(options{runs: 5, failureRuns: 2, duration: time.Second, seed: 9, quick: true}, []string{"table1"}, began, [2]float64{1, 2})
	want := map[string]conditions{
		"table1": {Time: "2026-03-04 05:06 UTC", Quick: true, Runs: 5, Duration: "1s", Seed: 9, Load: [2]float64{1, 2}, Notes: []string{"peak, nginx: lost"}},
		"table4": last.Measured["table4"],
	}
	if !reflect.DeepEqual(r.Measured, want) {
		t.Errorf("%+v\nwant %+v", r.Measured, want)
	}
	if !reflect.DeepEqual(r.Memory, last.Memory) || r.Peaks != nil {
		t.Error("the samples are not those of the experiments that were kept")
	}
	if got := r.notes(); !reflect.DeepEqual(got, []string{"peak, nginx: lost", "table 4, nginx with 100: lost"}) {
		t.Errorf("notes %q", got)
	}
}

func TestPlots(t *testing.T) {
	for _, r := range []*result{sample(), {}} {
		files, err := r.plots()
		if err != nil {
			t.Fatal(err)
		}
		for name, svg := range files {
			if !bytes.Contains(svg, []byte("<svg")) || !bytes.Contains(svg, []byte("</svg>")) {
				t.Errorf("%s is no drawing:\n%s", name, svg)
			}
		}
	}
}

func TestPerSecond(t *testing.T) {
	got := perSecond([]rig.Slot{{Good: 10}, {Good: 20}, {Good: 30}, {Good: 40}, {Good: 50, Errors: 3}, {Good: 5}}, 1.5)
	if want := (plotter.XYs{{X: 0.5, Y: 300}, {X: 1, Y: 10}, {X: 1.5, Y: 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReplaceBlocks(t *testing.T) {
	page := "before\n" + mark("a") + "old\n" + endMark + "between\n" + mark("b") + endMark + "after\n"
	want := "before\n" + mark("a") + "new\nlines\n" + endMark + "between\n" + mark("b") + "more\n" + endMark + "after\n"
	got, err := replaceBlocks(page, []block{{name: "a", text: "new\nlines\n"}, {name: "b", text: "more\n"}})
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := replaceBlocks(page, []block{{name: "c"}}); err == nil || !strings.Contains(err.Error(), "block c") {
		t.Errorf("error %v", err)
	}
}

// The page has the figures of the samples beside it.
func TestPageIsAsMeasured(t *testing.T) {
	r, err := read(filepath.FromSlash("../results/paper/samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/paper.md"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := replaceBlocks(string(page), r.blocks())
	if err != nil {
		t.Fatal(err)
	}
	if got != string(page) {
		t.Error("docs/paper.md is not as the samples say: run go run . -render")
	}
}
