package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/dataplane/queueing"
	"github.com/headgate/headgate/dataplane/queueing/simulation"
)

// plan is what headgate model says. Its JSON has times in seconds, loads in
// requests per second and memory in bytes.
type plan struct {
	Measured   *measured   `json:"measured,omitempty"`
	Stages     []planStage `json:"stages"`
	Capacity   float64     `json:"capacity"`
	Bottleneck string      `json:"bottleneck"`
	Knee       float64     `json:"knee"`
	KneeTime   float64     `json:"kneeTime"`
	Target     float64     `json:"target"`
	MaxLoadMMc float64     `json:"maxLoadMMc"`
	MaxLoadGGc float64     `json:"maxLoadGGc"`
	Rows       []planRow   `json:"rows"`
	Memory     planMemory  `json:"memory"`

	pipeline queueing.Pipeline
}

type planStage struct {
	Name      string  `json:"name"`
	Servers   int     `json:"servers"`
	Mu        float64 `json:"mu"`
	ArrivalCV float64 `json:"arrivalCV"`
	ServiceCV float64 `json:"serviceCV"`
}

// planRow is one load. Times are 0 where the load is above the capacity.
type planRow struct {
	Load      float64 `json:"load"`
	Rho       float64 `json:"rho"` // of the bottleneck
	TimeMMc   float64 `json:"timeMMc"`
	TimeGGc   float64 `json:"timeGGc"`
	DelayGGc  float64 `json:"delayGGc"`
	Simulated float64 `json:"simulated,omitempty"`
	Stable    bool    `json:"stable"`
}

type planMemory struct {
	Connections int   `json:"connections"`
	Async       int64 `json:"async"`
	Sync        int64 `json:"sync"`
}

// planLoads are the loads of the table, as parts of the capacity: the paper's
// load levels.
var planLoads = []float64{0.20, 0.40, 0.60, 0.80, 0.95}

// plan works the figures out.
func (f *modelFlags) plan() (*plan, error) {
	pipeline, names, err := f.pipeline()
	if err != nil {
		return nil, err
	}
	p := &plan{pipeline: pipeline}
	bound, stage, err := pipeline.Bound()
	if err != nil {
		return nil, err
	}
	p.Capacity, p.Bottleneck = bound, names[stage]
	for i, q := range pipeline {
		p.Stages = append(p.Stages, planStage{names[i], q.Servers, q.Mu, q.ArrivalCV, q.ServiceCV})
	}
	if p.Knee, err = pipeline.Knee(queueing.Queue.GGc); err != nil {
		return nil, err
	}
	if p.KneeTime, err = pipeline.At(p.Knee, queueing.Queue.GGc); err != nil {
		return nil, err
	}
	if p.Target = f.target.Seconds(); f.target == 0 {
		idle, err := pipeline.At(0, queueing.Queue.GGc)
		if err != nil {
			return nil, err
		}
		p.Target = 2 * idle
	}
	if p.MaxLoadMMc, err = pipeline.MaxLoad(p.Target, queueing.Queue.MMc); err != nil {
		return nil, fmt.Errorf("--target %v: %w", f.target, err)
	}
	if p.MaxLoadGGc, err = pipeline.MaxLoad(p.Target, queueing.Queue.GGc); err != nil {
		return nil, err
	}
	loads := make([]float64, 0, len(planLoads)+1)
	for _, part := range planLoads {
		loads = append(loads, part*bound)
	}
	if f.load != 0 {
		loads = append(loads, f.load)
	}
	for _, load := range loads {
		r, err := p.row(load, f.simulate)
		if err != nil {
			return nil, fmt.Errorf("at %v requests per second: %w", load, err)
		}
		p.Rows = append(p.Rows, r)
	}
	return p, f.planMemory(p)
}

// planMemory fills in the memory.
func (f *modelFlags) planMemory(p *plan) error {
	m, err := f.memory()
	if err != nil {
		return err
	}
	p.Memory.Connections = f.connections
	if p.Memory.Async, err = m.Async(f.connections, f.workers); err != nil {
		return fmt.Errorf("--connections %d: %w", f.connections, err)
	}
	p.Memory.Sync, err = m.Sync(f.connections)
	return err
}

// row returns the figures at a load.
func (p *plan) row(load float64, simulate bool) (planRow, error) {
	r := planRow{Load: load, Rho: load / p.Capacity}
	var err error
	if r.TimeMMc, err = p.pipeline.At(load, queueing.Queue.MMc); errors.Is(err, queueing.ErrUnstable) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if r.TimeGGc, err = p.pipeline.At(load, queueing.Queue.GGc); err != nil {
		return r, err
	}
	r.Stable = true
	r.DelayGGc = r.TimeGGc
	for _, q := range p.pipeline {
		r.DelayGGc -= 1 / q.Mu
		if !simulate || load == 0 {
			continue
		}
		s, err := simulation.Run(simulation.Config{
			Arrivals: simulation.WithCV(1/load, q.ArrivalCV), Services: simulation.WithCV(1/q.Mu, q.ServiceCV),
			Servers: q.Servers, Customers: 200_000, WarmUp: 20_000, Seed: 1,
		})
		if err != nil {
			return r, err
		}
		r.Simulated += s.Delay + 1/q.Mu
	}
	r.DelayGGc = max(r.DelayGGc, 0)
	return r, nil
}

// text prints the plan for people.
func (p *plan) text() string {
	var b strings.Builder
	if m := p.Measured; m != nil {
		fmt.Fprintf(&b, "Measured over %s: %.4g requests per second, a worker's time per request %s", seconds(m.Interval), m.Lambda, seconds(1/m.Mu))
		if m.Cluster != "" {
			fmt.Fprintf(&b, ",\n%s answers in %s, %.4g times per second", m.Cluster, seconds(m.Upstream), m.ClusterLambda)
		}
		b.WriteString(".\n\n")
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tservers\tservice\tCV\tcapacity/s\t")
	for _, s := range p.Stages {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.3g\t%.0f\t\n", s.Name, s.Servers, seconds(1/s.Mu), s.ServiceCV, float64(s.Servers)*s.Mu)
	}
	t.Flush()
	fmt.Fprintf(&b, "\nCapacity: %.0f requests per second, bounded by the %s (Eq. 1).\n", p.Capacity, p.Bottleneck)
	fmt.Fprintf(&b, "Knee: %.0f/s (%.0f %%), where the mean is %s.\n", p.Knee, 100*p.Knee/p.Capacity, seconds(p.KneeTime))
	if p.MaxLoadGGc == 0 {
		fmt.Fprintf(&b, "A mean of %s is out of reach: services alone take longer.\n\n", seconds(p.Target))
	} else {
		fmt.Fprintf(&b, "Within a mean of %s: %.0f/s (%.0f %%) by G/G/c, %.0f/s (%.0f %%) by M/M/c.\n\n", seconds(p.Target),
			p.MaxLoadGGc, 100*p.MaxLoadGGc/p.Capacity, p.MaxLoadMMc, 100*p.MaxLoadMMc/p.Capacity)
	}

	simulated := false
	worst := 0.0
	for _, r := range p.Rows {
		simulated = simulated || r.Simulated > 0
		worst = max(worst, r.DelayGGc)
	}
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "load\tper second\tM/M/c\tG/G/c\t")
	if simulated {
		fmt.Fprint(t, "simulated\t")
	}
	fmt.Fprintln(t, "waiting\t")
	for _, r := range p.Rows {
		fmt.Fprintf(t, "%.0f %%\t%.0f\t", 100*r.Rho, r.Load)
		if !r.Stable {
			fmt.Fprint(t, "overload\toverload\t")
			if simulated {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprintln(t, "\t")
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t", seconds(r.TimeMMc), seconds(r.TimeGGc))
		if simulated {
			fmt.Fprintf(t, "%s\t", seconds(r.Simulated))
		}
		fmt.Fprintf(t, "%s\t", seconds(r.DelayGGc))
		if worst > 0 {
			fmt.Fprintf(t, " %-30s", strings.Repeat("#", int(30*r.DelayGGc/worst+0.5)))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	m := p.Memory
	fmt.Fprintf(&b, "\nMemory of %d connections: %.0f MB (Eq. 12); with a thread for each it would be %.0f MB (Eq. 11).\n",
		m.Connections, float64(m.Async)/1e6, float64(m.Sync)/1e6)
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// seconds prints a time with three digits.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s < 1e-6:
		return "<1us"
	case s < 1e-3:
		return fmt.Sprintf("%.3gus", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3gms", s*1e3)
	case s < 1000:
		return fmt.Sprintf("%.3gs", s)
	}
	return time.Duration(min(s, 1e9) * 1e9).Round(time.Second).String()
}
