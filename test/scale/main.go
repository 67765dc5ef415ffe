//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the flags.
type options struct {
	routes   int
	attached int
	change   time.Duration
	idle     time.Duration
	churn    time.Duration
	only     string
	out      string
}

// scenarios in the order of their run: routes change while those of propagation
// are still there.
var scenarios = []string{"attached", "idle", "propagation", "change", "churn"}

func main() {
	var o options
	flag.IntVar(&o.routes, "routes", 5000, "routes of propagation and churn")
	flag.IntVar(&o.attached, "attached", 1000, "routes of attached and idle")
	flag.DurationVar(&o.change, "change", 30*time.Second, "how long routes change under load")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long nothing happens")
	flag.DurationVar(&o.churn, "churn", 20*time.Second, "how long endpoints change, at each rate")
	flag.StringVar(&o.only, "only", "", "comma-separated: "+strings.Join(scenarios, ", ")+"; default: all")
	flag.StringVar(&o.out, "out", "", "directory of scale.json and scale.md; default: ../bench/results, if all scenarios ran")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	failed, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run measures, prints and writes the figures, and returns how many scenarios
// did something wrong.
func run(ctx context.Context, o options) (failed int, err error) {
	wanted := scenarios
	if o.only != "" {
		wanted = strings.Split(o.only, ",")
	} else if o.out == "" {
		o.out = filepath.Join("..", "bench", "results")
	}
	for _, name := range wanted {
		if !slices.Contains(scenarios, name) {
			return 0, fmt.Errorf("-only %q: use %s", name, strings.Join(scenarios, ", "))
		}
	}
	if o.routes < 1 || o.attached < 1 {
		return 0, errors.New("-routes, -attached: use 1 or more")
	}
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "headgate-scale-")
	if err != nil {
		return 0, err
	}
	r := newResult()
	l, err := newLab(ctx, dir, os.Stderr)
	if err == nil {
		r.Version, r.Kubernetes = l.version, l.kubernetes
		err = errors.Join(l.runAll(ctx, o, wanted, &r), l.close())
	}
	if err != nil {
		return 0, fmt.Errorf("%w\nthe logs are in %s", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	r.finish()
	fmt.Print(r.markdown())
	if o.out != "" {
		if err := r.write(o.out); err != nil {
			return 0, err
		}
		fmt.Printf("\nwritten to %s\n", filepath.Join(o.out, "scale.md"))
	}
	for name, problems := range r.problems() {
		if len(problems) > 0 {
			failed++
		}
		for _, p := range problems {
			fmt.Printf("%s: %s\n", name, p)
		}
	}
	fmt.Printf("%d passed, %d failed\n", len(wanted)-failed, failed)
	return failed, nil
}

// runAll runs the scenarios that are wanted.
func (l *lab) runAll(ctx context.Context, o options, wanted []string, r *result) error {
	others := 0
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"attached", func() error { return keep(&r.Attached)(l.runAttached(ctx, o.attached)) }},
		{"idle", func() error { return keep(&r.Idle)(l.runIdle(ctx, o.attached, o.idle)) }},
		{"propagation", func() error {
			others = o.routes
			return keep(&r.Propagation)(l.runPropagation(ctx, o.routes))
		}},
		{"change", func() error { return keep(&r.Change)(l.runChange(ctx, others, 10, o.change, 2000)) }},
		{"churn", func() error { return keep(&r.Churn)(l.runChurn(ctx, o.routes, o.churn)) }},
	} {
		if s.name == "churn" && others > 0 {
			if err := l.remove(ctx, propagated); err != nil {
				return err
			}
			others = 0
		}
		if !slices.Contains(wanted, s.name) {
			continue
		}
		l.logf("%s", s.name)
		began := time.Now()
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		l.logf("%s took %.0f s", s.name, time.Since(began).Seconds())
	}
	return nil
}

// keep keeps what a scenario came to.
func keep[T any](into **T) func(T, error) error {
	return func(r T, err error) error {
		*into = &r
		return err
	}
}
