//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// spread is how a set of times lies, in milliseconds.
type spread struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// newSpread takes nearest ranks: a percentile is a time that was seen.
func newSpread(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := func(percent int) float64 { return ms(sorted[(len(sorted)*percent+99)/100-1]) }
	return spread{len(sorted), rank(50), rank(99), rank(100)}
}

// stage is the routes from one to another, counted from 1.
type stage struct {
	From   int    `json:"from"`
	To     int    `json:"to"`
	Sent   spread `json:"from_request"` // since the create was sent
	Stored spread `json:"from_answer"`  // since the API server answered it
}

// propagationResult is how soon new routes are served.
type propagationResult struct {
	Routes   int      `json:"routes"`
	Stages   []stage  `json:"stages"`
	Requests int      `json:"requests"`
	Wrong    []string `json:"wrong"` // neither 404 nor the route's own 200; or a 404 after that
	Seconds  float64  `json:"seconds"`
	CPU      float64  `json:"cpu_percent"`
}

func (r propagationResult) problems() []string {
	if len(r.Wrong) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d wrong answers, such as %s", len(r.Wrong), r.Wrong[0])}
}

// pollPause is how long the prober waits after a 404. It costs the gateway's CPU
// time, and is the resolution.
const pollPause = 500 * time.Microsecond

// propagated is the namespace of the routes.
const propagated = "propagation"

// runPropagation makes n routes one after the other, and asks for each from
// before it is made until it is served. The routes stay.
func (l *lab) runPropagation(ctx context.Context, n int) (r propagationResult, err error) {
	r.Routes = n
	if err := l.furnish(ctx, propagated); err != nil {
		return r, err
	}
	p := prober{l: l, lines: l.lines(4), r: &r}
	defer closeAll(p.lines)
	before, err := l.controller.use()
	if err != nil {
		return r, err
	}
	sent, stored := make([]time.Duration, n), make([]time.Duration, n)
	for i := range n {
		if sent[i], stored[i], err = p.create(ctx, routeName(i)); err != nil {
			return r, err
		}
		if (i+1)%1000 == 0 {
			l.logf("%d routes", i+1)
		}
	}
	after, err := l.controller.use()
	if err != nil {
		return r, err
	}
	use := between(before, after)
	r.Seconds, r.CPU = use.Seconds, use.CPUPercent
	for _, s := range stages(n) {
		from, to := s[0], s[1]
		r.Stages = append(r.Stages, stage{from + 1, to, newSpread(sent[from:to]), newSpread(stored[from:to])})
	}
	// All of them are served still.
	for i := range n {
		p.ask(routeName(i), true)
	}
	return r, l.attached(ctx, n)
}

func routeName(i int) string { return fmt.Sprintf("%s-%d", propagated, i) }

// stages are the spans of routes to tell about: the first 3,000, all, and the
// last fifth, which is made beside all the others.
func stages(n int) [][2]int {
	var out [][2]int
	if n > 3000 {
		out = append(out, [2]int{0, 3000})
	}
	return append(out, [2]int{0, n}, [2]int{n - max(1, n/5), n})
}

// prober asks for routes.
type prober struct {
	l     *lab
	lines []*line
	next  int
	r     *propagationResult
}

// create makes a route and returns when it was served, since the request and
// since the answer of the API server.
func (p *prober) create(ctx context.Context, name string) (sent, stored time.Duration, err error) {
	type outcome struct {
		at  time.Time
		err error
	}
	answered := make(chan outcome, 1)
	began := time.Now()
	go func() {
		err := p.l.Create(ctx, newRoute(propagated, name, shared))
		answered <- outcome{time.Now(), err}
	}()
	for !p.ask(name, false) {
		if time.Since(began) > patience {
			return 0, 0, fmt.Errorf("%s is not served", name)
		}
		if err := sleep(ctx, pollPause); err != nil {
			return 0, 0, err
		}
	}
	served := time.Now()
	o := <-answered
	// Who has seen it once sees it from all loops.
	for range p.lines {
		p.ask(name, true)
	}
	// It may be served before the API server's answer is here.
	return served.Sub(began), max(0, served.Sub(o.at)), o.err
}

// ask sends one request and tells whether the route answered it. Once served, it
// must.
func (p *prober) ask(name string, served bool) bool {
	line := p.lines[p.next%len(p.lines)]
	p.next++
	p.r.Requests++
	a, err := line.get(hostname(name), "/")
	if err != nil {
		p.r.Wrong = append(p.r.Wrong, name+": "+err.Error())
		return false
	}
	if a.String() == "200 a "+name+" /" {
		return true
	}
	if served || a.status != http.StatusNotFound {
		p.r.Wrong = append(p.r.Wrong, name+": "+a.String())
	}
	return false
}
