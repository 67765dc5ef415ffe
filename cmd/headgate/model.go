package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/dataplane/queueing"
)

type modelFlags struct {
	service, cpuIO time.Duration
	mu, async      float64
	workers        int
	arrivalCV      float64
	serviceCV      float64
	pool           int
	upstream       time.Duration
	upstreamCV     float64
	target         time.Duration
	load           float64
	connections    int
	base, thread   string
	request        string
	simulate       bool
	output, plot   string
	admin, cluster string
	interval       time.Duration
}

func modelCmd() *cobra.Command {
	var f modelFlags
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Plan capacity: what load at what response time",
		Long: `Plan capacity with a queueing model: how much load a node carries at which mean
response time, where the knee is, and what memory its connections need.

The gateway is two stages: the workers, each of which is busy with a request for
--service, and, with --pool, the connections to an upstream that answers within
--upstream. M/M/c assumes Poisson arrivals and exponential services; G/G/c takes the
CVs (standard deviation over mean) that you give. docs/model.md explains the rest.

With --admin the figures come from a running gateway: two scrapes of its /metrics.
A flag that is given wins over what was measured. Nothing is changed.`,
		Example: `  # What do four cores carry when a request costs 40 us, within 200 us in the mean?
  headgate model --service 40us --workers 4 --service-cv 1.74 --arrival-cv 1.18 --target 200us

  # How large must the pool be? 50 connections, an upstream of 20 ms with a long tail.
  headgate model --service 40us --pool 50 --upstream 20ms --upstream-cv 2 --target 30ms --plot plan.svg

  # The same of a gateway that runs, over 30 seconds.
  headgate model --admin http://127.0.0.1:9901 --interval 30s --cluster default/orders:80`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.Flags().Changed)
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&f.service, "service", 0, "time that a request keeps a worker busy")
	fs.Float64Var(&f.mu, "mu", 0, "requests per second of one worker; in place of --service")
	fs.DurationVar(&f.cpuIO, "io", 0, "time that a request waits for input and output (t_io)")
	fs.Float64Var(&f.async, "async", 1, "the part of --io in which the worker serves others, 0 to 1; 0 is a thread per request")
	fs.IntVar(&f.workers, "workers", runtime.NumCPU(), "workers: event loops")
	fs.Float64Var(&f.arrivalCV, "arrival-cv", 1, "CV of the times between arrivals")
	fs.Float64Var(&f.serviceCV, "service-cv", 1, "CV of the worker's time per request")
	fs.IntVar(&f.pool, "pool", 0, "connections to the upstream; 0 leaves the upstream out")
	fs.DurationVar(&f.upstream, "upstream", 0, "mean time in which the upstream answers")
	fs.Float64Var(&f.upstreamCV, "upstream-cv", 1, "CV of the upstream's time")
	fs.DurationVar(&f.target, "target", 0, "the mean response time to keep; default twice that of an idle gateway")
	fs.Float64Var(&f.load, "load", 0, "also say what happens at this many requests per second")
	fs.IntVar(&f.connections, "connections", 10_000, "active connections, for the memory")
	fs.StringVar(&f.base, "memory-base", "256MB", "memory of the process without connections; MB is 10^6 bytes, MiB 2^20")
	fs.StringVar(&f.request, "memory-request", "4KB", "memory of a connection")
	fs.StringVar(&f.thread, "memory-thread", "1MB", "memory of a thread")
	fs.BoolVar(&f.simulate, "simulate", false, "also simulate each stage (the same seed each time)")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	fs.StringVar(&f.plot, "plot", "", "also draw response time over load to this SVG file")
	fs.StringVar(&f.admin, "admin", "", "address of a running gateway's admin server, such as http://127.0.0.1:9901")
	fs.DurationVar(&f.interval, "interval", 10*time.Second, "time between the two scrapes of --admin")
	fs.StringVar(&f.cluster, "cluster", "", "the upstream for --admin, namespace/service:port; default the busiest")
	return cmd
}

// run makes and prints the plan. given says whether a flag was given.
func (f *modelFlags) run(ctx context.Context, w io.Writer, given func(string) bool) error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output %q: use text or json", f.output)
	}
	var seen *measured
	if f.admin != "" {
		var err error
		if seen, err = measure(ctx, f.admin, f.cluster, f.interval); err != nil {
			return fmt.Errorf("--admin %s: %w", f.admin, err)
		}
		f.take(seen, given)
	}
	p, err := f.plan()
	if err != nil {
		return err
	}
	p.Measured = seen
	if f.plot != "" {
		if err := os.WriteFile(f.plot, p.svg(), 0o644); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	if f.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(p)
	}
	_, err = io.WriteString(w, p.text())
	return err
}

// take fills in what was measured and not given.
func (f *modelFlags) take(m *measured, given func(string) bool) {
	if !given("service") && !given("mu") {
		f.mu = m.Mu
	}
	if !given("workers") {
		f.workers = m.Workers
	}
	if !given("load") {
		f.load = m.Lambda
	}
	if m.Cluster != "" && !given("pool") {
		f.pool = m.Pool
	}
	if m.Cluster != "" && !given("upstream") {
		f.upstream = time.Duration(m.Upstream * 1e9)
	}
	for _, cv := range []struct {
		flag string
		seen float64
		to   *float64
	}{{"arrival-cv", m.ArrivalCV, &f.arrivalCV}, {"service-cv", m.ServiceCV, &f.serviceCV}, {"upstream-cv", m.UpstreamCV, &f.upstreamCV}} {
		if cv.seen > 0 && !given(cv.flag) {
			*cv.to = cv.seen
		}
	}
}

// pipeline returns the stages, and their names.
func (f *modelFlags) pipeline() (queueing.Pipeline, []string, error) {
	mu := f.mu
	switch {
	case mu != 0 && f.service != 0:
		return nil, nil, errors.New("--service and --mu say the same: give one of them")
	case mu == 0 && f.service == 0:
		return nil, nil, errors.New("give --service (such as 40us), --mu, or --admin")
	case !(mu >= 0) || math.IsInf(mu, 1):
		return nil, nil, fmt.Errorf("--mu %v: use a positive number", mu)
	case mu != 0:
		f.service = time.Duration(math.Round(1e9 / mu))
	}
	rate, err := queueing.ServiceRate(f.service, f.cpuIO, f.async)
	if err != nil {
		return nil, nil, fmt.Errorf("--service, --io, --async: %w", err)
	}
	if mu != 0 && f.cpuIO == 0 {
		rate = mu // not by way of a rounded duration
	}
	p := queueing.Pipeline{{Mu: rate, Servers: f.workers, ArrivalCV: f.arrivalCV, ServiceCV: f.serviceCV}}
	names := []string{"workers"}
	if (f.pool == 0) != (f.upstream == 0) {
		return nil, nil, errors.New("--pool and --upstream go together")
	}
	if f.pool != 0 {
		if f.pool < 0 || f.upstream < 0 {
			return nil, nil, fmt.Errorf("--pool %d, --upstream %v: use positive numbers", f.pool, f.upstream)
		}
		p = append(p, queueing.Queue{Mu: 1 / f.upstream.Seconds(), Servers: f.pool, ArrivalCV: f.arrivalCV, ServiceCV: f.upstreamCV})
		names = append(names, "pool")
	}
	return p, names, nil
}

// memory returns the constants of the memory model.
func (f *modelFlags) memory() (queueing.Memory, error) {
	var m queueing.Memory
	for _, x := range []struct {
		flag, value string
		to          *int64
	}{{"base", f.base, &m.Base}, {"request", f.request, &m.Request}, {"thread", f.thread, &m.Thread}} {
		v, err := parseBytes(x.value)
		if err != nil {
			return m, fmt.Errorf("--memory-%s %q: %w", x.flag, x.value, err)
		}
		*x.to = v
	}
	return m, nil
}

// parseBytes reads a size such as 4096, 4KB, 1.5MiB.
func parseBytes(s string) (int64, error) {
	number := strings.TrimRight(s, "KMGTiB")
	unit := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[s[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || unit == 0 || !(v >= 0 && v*unit < 1<<60) {
		return 0, errors.New("use a size such as 4096, 4KB or 256MiB")
	}
	return int64(math.Round(v * unit)), nil
}
