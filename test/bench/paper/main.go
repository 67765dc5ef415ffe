//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// module is what is measured.
const module = "github.com/headgate/headgate"

// options say how much is measured.
type options struct {
	runs        int           // of Tables 1 and 2
	failureRuns int           // of Tables 3 and 4 and the failures, which take longer
	duration    time.Duration // of each measurement; twice that in Table 3
	storm       time.Duration
	seed        uint64
	quick       bool
}

// experiment is one part of the paper's section 5.
type experiment struct {
	name  string
	title string
	run   func(*lab) error
	runs  func(options) int
	// keep takes its samples over from an earlier result.
	keep func(to, from *result)
}

var experiments = []experiment{
	{"table1", "Table 1", (*lab).runTable1, options.mainRuns, func(to, from *result) { to.Peaks, to.Levels = from.Peaks, from.Levels }},
	{"table2", "Table 2", (*lab).runTable2, options.mainRuns, func(to, from *result) { to.Scaling = from.Scaling }},
	{"table3", "Table 3", (*lab).runTable3, options.longRuns, func(to, from *result) { to.Pressure = from.Pressure }},
	{"table4", "Table 4", (*lab).runTable4, options.longRuns, func(to, from *result) { to.Memory = from.Memory }},
	{"storm", "the storm", (*lab).runStorm, options.longRuns, func(to, from *result) { to.Storm = from.Storm }},
	{"exhaustion", "the exhausted pool", (*lab).runExhaustion, options.longRuns, func(to, from *result) { to.Exhaustion = from.Exhaustion }},
}

func (o options) mainRuns() int { return o.runs }
func (o options) longRuns() int { return o.failureRuns }

func main() {
	var names []string
	for _, e := range experiments {
		names = append(names, e.name)
	}
	opt := options{}
	flag.IntVar(&opt.runs, "runs", 5, "of each measurement of Tables 1 and 2; the tables have medians")
	flag.IntVar(&opt.failureRuns, "failure-runs", 3, "of Tables 3 and 4 and of the failures")
	flag.DurationVar(&opt.duration, "duration", 2*time.Second, "of each measurement, in whole seconds")
	flag.DurationVar(&opt.storm, "storm", 8*time.Second, "how long a storm takes")
	flag.Uint64Var(&opt.seed, "seed", 1, "of arrivals and service times")
	flag.BoolVar(&opt.quick, "quick", false, "one short run of each: to see that it works, not to cite")
	only := flag.String("only", "", "comma-separated, of "+strings.Join(names, ", ")+"; the others keep their last samples")
	render := flag.Bool("render", false, "measure nothing: write tables, plots and the page again")
	out := flag.String("out", "test/bench/results/paper", "directory of the results, in the module")
	page := flag.String("page", "docs/paper.md", "page whose tables are replaced, in the module; empty for none")
	flag.Parse()
	if opt.quick {
		opt.runs, opt.failureRuns, opt.duration, opt.storm = 1, 1, time.Second, 5*time.Second
	}
	wanted := names
	if *only != "" {
		wanted = strings.Split(*only, ",")
	}
	err := opt.validate(wanted, names)
	if err == nil {
		err = run(opt, wanted, *render, *out, *page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "paper:", err)
		os.Exit(1)
	}
}

func (o options) validate(wanted, names []string) error {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown experiment %q: use %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case o.runs < 1 || o.failureRuns < 1:
		return fmt.Errorf("-runs and -failure-runs must be at least 1")
	case o.duration < time.Second || o.duration%time.Second != 0:
		return fmt.Errorf("-duration %v: use whole seconds, wrk knows no others", o.duration)
	case o.storm < time.Second:
		return fmt.Errorf("-storm %v: use a second or more", o.storm)
	}
	return nil
}

func run(opt options, wanted []string, render bool, out, page string) error {
	root, err := rig.ModuleRoot(module)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	if page != "" && !filepath.IsAbs(page) {
		page = filepath.Join(root, page)
	}
	samples := filepath.Join(out, "samples.jsonl")
	var last *result
	if render || len(wanted) < len(experiments) {
		if last, err = read(samples); err != nil && (render || !os.IsNotExist(err)) {
			return err
		}
	}
	if render {
		return last.write(out, page)
	}
	r, err := measure(opt, root, wanted, last)
	if err != nil {
		return err
	}
	return r.write(out, page)
}

// measure runs the experiments; those that are not wanted keep their samples.
func measure(opt options, root string, wanted []string, last *result) (*result, error) {
	begin := time.Now()
	scratch, err := os.MkdirTemp("", "headgate-paper-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	l, err := newLab(opt, root, scratch)
	if err != nil {
		return nil, err
	}
	defer l.close()
	r := l.result
	r.CPUs, r.Kernel = l.cpus, rig.Kernel()
	load := rig.LoadAverage()
	// An interrupt ends all that was started.
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	finished := make(chan error, 1)
	go func() { finished <- l.experiments(wanted, last) }()
	select {
	case err = <-finished:
	case <-interrupt:
		return nil, fmt.Errorf("interrupted")
	}
	if err != nil {
		return nil, err
	}
	r.conclude(opt, wanted, begin, [2]float64{load, rig.LoadAverage()})
	l.logf("finished in %v", time.Since(begin).Round(time.Second))
	return r, nil
}

// take takes the samples of an experiment over from an earlier result, with how
// they came about.
func (r *result) take(e experiment, from *result) {
	e.keep(r, from)
	if c, ok := from.Measured[e.name]; ok {
		r.Measured[e.name] = c
	}
}

// conclude says of the experiments of a run how they were measured; what went
// wrong in them has been noted.
func (r *result) conclude(opt options, ran []string, began time.Time, load [2]float64) {
	for _, e := range experiments {
		if !slices.Contains(ran, e.name) {
			continue
		}
		r.Measured[e.name] = conditions{Time: began.UTC().Format("2006-01-02 15:04 MST"), Quick: opt.quick, Runs: e.runs(opt),
			Duration: opt.duration.String(), Seed: opt.seed, Load: load, Notes: r.Measured[e.name].Notes}
	}
}

func (l *lab) experiments(wanted []string, last *result) error {
	for _, e := range experiments {
		if !slices.Contains(wanted, e.name) {
			if last != nil {
				l.result.take(e, last)
			}
			continue
		}
		began := time.Now()
		l.running = e.name
		if err := e.run(l); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		l.logf("%s took %v", e.name, time.Since(began).Round(time.Second))
	}
	return nil
}
