//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is one figure of a table, and what it should be.
type row struct{ what, figure, target string }

// markdown renders the result as tables, one for each scenario that ran.
func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Scale\n\nMeasured %s on %d CPUs, Linux %s, by `make scale`, in %.0f s. Load average %.2f before, %.2f after: the API server, etcd, "+
		"the controller with its data plane, the backends and the loader share the CPUs. How it is measured, and what the figures can tell: see [DESIGN.md](../../scale/DESIGN.md).\n\n"+
		"headgate %s, %s; Kubernetes %s.\n",
		r.Time, r.CPUs, r.Kernel, r.Seconds, r.Load[0], r.Load[1], r.Version, r.Go, r.Kubernetes)
	if r.busy() {
		fmt.Fprintf(&b, "\n%s\n", busyNote)
	}
	if a := r.Attached; a != nil {
		table(&b, fmt.Sprintf("attached: %d routes attach as fast as the API server takes them", a.Routes), a.rows())
	}
	if i := r.Idle; i != nil {
		table(&b, fmt.Sprintf("idle: %d routes, nothing happens", i.Routes), i.rows())
	}
	if p := r.Propagation; p != nil {
		table(&b, fmt.Sprintf("propagation: %d routes, made one after the other", p.Routes), p.rows())
	}
	if c := r.Change; c != nil {
		table(&b, fmt.Sprintf("change: %d routes change under load, beside %d others", c.Routes, c.Others), c.rows())
	}
	if c := r.Churn; c != nil {
		table(&b, fmt.Sprintf("churn: %d routes with a Service each, at rest and with endpoints that come and go", c.Routes), c.rows())
		c.loads(&b)
	}
	return b.String()
}

// busyNote says what the figures of a machine are worth that is not left alone.
const busyNote = "Other programs kept the machine busy before the run began: times say how it does on a crowded machine, not how fast it is."

// busy tells whether others used much of the CPUs before the run began.
func (r *result) busy() bool { return r.Load[0] > 0.5*float64(r.CPUs) }

func table(b *strings.Builder, title string, rows []row) {
	fmt.Fprintf(b, "\n## %s\n\n| what | figure | target |\n| --- | ---: | ---: |\n", title)
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s | %s |\n", r.what, r.figure, r.target)
	}
}

func (r *attachedResult) rows() []row {
	return []row{
		{"creating them took", duration(r.CreateMS), ""},
		{"from the last one's creation until all status was right", duration(r.SettleMS), "2 s"},
		{"writes of the Gateway", fmt.Sprint(r.GatewayWrites), fmt.Sprint(mostGatewayWrites)},
		{"writes of routes", fmt.Sprint(r.RouteWrites), fmt.Sprint(r.Routes)},
		{"deleting them took", duration(r.DeleteMS), ""},
		{"from the deletion until the Gateway counted none", duration(r.TeardownMS), "2 s"},
		{"writes meanwhile", fmt.Sprint(r.TeardownWrites), fmt.Sprint(mostGatewayWrites)},
	}
}

func (r *idleResult) rows() []row {
	return []row{
		{"for", fmt.Sprintf("%.0f s", r.Seconds), ""},
		{"writes, besides the lease", fmt.Sprint(len(r.Writes)), "0"},
		{"writes of the lease", fmt.Sprint(r.Leases), ""},
		{"CPU, of one", fmt.Sprintf("%.2f %%", r.Load.CPUPercent), ""},
	}
}

func (r *propagationResult) rows() []row {
	var out []row
	for _, s := range r.Stages {
		out = append(out,
			row{fmt.Sprintf("routes %d to %d, from the API server's answer: p50, p99, max", s.From, s.To), s.Stored.String(), "10, 30 ms"},
			row{fmt.Sprintf("routes %d to %d, from the request: p50, p99, max", s.From, s.To), s.Sent.String(), ""},
		)
	}
	return append(out,
		row{"requests meanwhile", fmt.Sprint(r.Requests), ""},
		row{"answers that were neither 404 nor the route's, or 404 after that", fmt.Sprint(len(r.Wrong)), "0"},
		row{"CPU of the controller and its data plane, of one", fmt.Sprintf("%.0f %% for %.0f s", r.CPU, r.Seconds), ""},
	)
}

func (r *changeResult) rows() []row {
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(r.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, r.Kinds[k]))
	}
	return []row{
		{"requests, a second", fmt.Sprintf("%d, %.0f", r.Requests, r.PerSecond), ""},
		{"changes: " + strings.Join(kinds, ", "), fmt.Sprint(r.Changes), ""},
		{"errors, and answers that were neither the old nor the new one", fmt.Sprint(len(r.Wrong)), "0"},
		{"from the API server's answer to the first new answer: p50, p99, max", r.Served.String(), "10, 30 ms"},
	}
}

func (r *churnResult) rows() []row {
	return []row{
		{"creating them took", duration(r.CreateMS), ""},
		{"from the last one's creation until the Gateway counted all", duration(r.SettleMS), "2 s"},
		{"a restart: from the start of the process until it is ready", duration(r.RestartMS), ""},
		{"writes after the restart, besides the lease", fmt.Sprint(len(r.Writes)), "0"},
		{"requests while endpoints changed", fmt.Sprint(r.Requests), ""},
		{"errors and wrong answers meanwhile", fmt.Sprint(len(r.Wrong)), "0"},
	}
}

// loads renders what the process used.
func (r *churnResult) loads(b *strings.Builder) {
	fmt.Fprintf(b, "\n| the process | edits/s | CPU, of one | RSS MiB | of it its own | live heap MiB | allocated MiB/s | objects/s | collections |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	one := func(name string, l load) {
		fmt.Fprintf(b, "| %s, %.0f s | %.0f | %.1f %% | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f |\n", name, l.Seconds, l.EditsPerSecond, l.CPUPercent,
			l.RSS, l.Anonymous, l.LiveHeap, l.AllocatedPerS, l.ObjectsPerS, l.Collections)
	}
	one("that saw them come, at rest", r.Fresh)
	one("started anew, at rest", r.Idle)
	for _, l := range r.Churn {
		one("with endpoints changing", l)
	}
}

// String is p50, p99 and the longest time.
func (s spread) String() string {
	return fmt.Sprintf("%.1f, %.1f, %.1f ms", s.P50, s.P99, s.Max)
}

func duration(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
