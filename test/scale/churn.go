//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// churnResult is what many routes cost, at rest and while their endpoints come
// and go.
type churnResult struct {
	Routes    int      `json:"routes"`
	CreateMS  float64  `json:"create_ms"`
	SettleMS  float64  `json:"settle_ms"`
	RestartMS float64  `json:"restart_ms"` // from the start of the process until it is ready
	Writes    []string `json:"writes"`     // of the process that was started anew, besides its DataPlane
	Fresh     load     `json:"fresh"`      // the process that saw all routes come
	Idle      load     `json:"idle"`       // the process that was started anew
	Churn     []load   `json:"churn"`
	Requests  int      `json:"requests"`
	Wrong     []string `json:"wrong"`
}

func (r churnResult) problems() []string {
	var out []string
	if len(r.Wrong) > 0 {
		out = append(out, fmt.Sprintf("%d wrong answers, such as %s", len(r.Wrong), r.Wrong[0]))
	}
	if len(r.Writes) > 0 {
		out = append(out, fmt.Sprintf("%d writes after a restart, such as %s", len(r.Writes), r.Writes[0]))
	}
	if r.Requests == 0 {
		out = append(out, "no request was answered")
	}
	return out
}

const (
	perNamespace = 100 // routes
	liveRoutes   = 10  // whose endpoints are the backends, in turn; nobody asks for the others
	liveRate     = 100 // requests a second to them
)

// churnRates are how many EndpointSlices are edited in a second: a quiet cluster,
// and a busy one.
var churnRates = []int{2, 100}

// runChurn has n routes, each to a Service of its own.
func (l *lab) runChurn(ctx context.Context, n int, d time.Duration) (r churnResult, err error) {
	r.Routes = n
	f := newFleet(l, n)
	if err := f.create(ctx, &r); err != nil {
		return r, err
	}
	if r.Fresh, err = l.rest(ctx, d/4); err != nil {
		return r, err
	}
	l.logf("starting the controller anew")
	if err := l.restart(ctx, &r); err != nil {
		return r, err
	}
	started := time.Now()
	if r.Idle, err = l.rest(ctx, d); err != nil {
		return r, err
	}
	all, err := l.writes(started)
	if err != nil {
		return r, err
	}
	for _, e := range all {
		if e.Resource != "dataplanes" { // it says that the process is another one
			r.Writes = append(r.Writes, describe(e))
		}
	}
	stop := l.press(f.live(), liveRate, f.check)
	for _, rate := range churnRates {
		l.logf("%d edits a second", rate)
		var use load
		if use, err = f.churn(ctx, rate, d); err != nil {
			break
		}
		r.Churn = append(r.Churn, use)
	}
	r.Requests, r.Wrong = stop()
	if err != nil {
		return r, err
	}
	if err := f.arrived(ctx); err != nil {
		return r, err
	}
	return r, l.remove(ctx, f.namespaces...)
}

// restart ends the controller and starts it anew.
func (l *lab) restart(ctx context.Context, r *churnResult) error {
	if err := l.controller.stop(); err != nil {
		return err
	}
	began := time.Now()
	c, err := startController(ctx, l.program, l.kubeconfig, filepath.Join(l.dir, "headgate-again.log"))
	if err != nil {
		return err
	}
	l.controller = c
	r.RestartMS = ms(time.Since(began))
	return nil
}

// rest measures the controller while nothing happens.
func (l *lab) rest(ctx context.Context, d time.Duration) (load, error) {
	return l.measure(ctx, func() (int, error) { return 0, sleep(ctx, d) })
}

// measure measures the controller during f, which returns how much it edited.
func (l *lab) measure(_ context.Context, f func() (int, error)) (load, error) {
	before, err := l.controller.use()
	if err != nil {
		return load{}, err
	}
	edits, err := f()
	if err != nil {
		return load{}, err
	}
	after, err := l.controller.use()
	if err != nil {
		return load{}, err
	}
	use := between(before, after)
	use.EditsPerSecond = float64(edits) / use.Seconds
	heap, err := l.controller.live()
	use.LiveHeap = mib(heap)
	return use, err
}

// fleet is many routes with a Service and an EndpointSlice each.
type fleet struct {
	l          *lab
	namespaces []string
	routes     []*gatewayv1.HTTPRoute
	slices     []*discoveryv1.EndpointSlice
	edits      int
	serial     int // of addresses
}

func newFleet(l *lab, n int) *fleet {
	f := &fleet{l: l}
	for i := range n {
		ns := fmt.Sprintf("apps-%d", i/perNamespace)
		if !slices.Contains(f.namespaces, ns) {
			f.namespaces = append(f.namespaces, ns)
		}
		name := fmt.Sprintf("app-%d", i)
		f.routes = append(f.routes, newRoute(ns, name, name))
		if i < liveRoutes {
			f.slices = append(f.slices, newSlice(ns, name, l.backends[0].port(), l.backends[0].host()))
			continue
		}
		f.slices = append(f.slices, newSlice(ns, name, 8080, f.address(), f.address()))
	}
	return f
}

func (f *fleet) address() string {
	f.serial++
	return idleAddress(f.serial)
}

func (f *fleet) create(ctx context.Context, r *churnResult) error {
	for _, ns := range f.namespaces {
		if err := f.l.Create(ctx, newNamespace(ns)); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := each(ctx, len(f.routes), func(i int) error {
		route := f.routes[i]
		for _, o := range []client.Object{newService(route.Namespace, route.Name), f.slices[i], route} {
			if err := f.l.Create(ctx, o); err != nil {
				return err
			}
		}
		if (i+1)%1000 == 0 {
			f.l.logf("%d routes with a Service each", i+1)
		}
		return nil
	}); err != nil {
		return err
	}
	created := time.Now()
	if err := f.l.attached(ctx, len(f.routes)); err != nil {
		return err
	}
	settled := time.Now()
	r.CreateMS, r.SettleMS = ms(created.Sub(began)), ms(settled.Sub(created))
	return f.l.quiet(ctx, time.Second)
}

// quiet waits until the controller has written nothing for a while.
func (l *lab) quiet(ctx context.Context, d time.Duration) error {
	return l.await(ctx, func() (string, error) {
		if err := sleep(ctx, d); err != nil {
			return "", err
		}
		all, err := l.writes(time.Now().Add(-d))
		if len(all) == 0 || err != nil {
			return "", err
		}
		return "the controller does not end writing: " + describe(all[0]), nil
	})
}

// live are the names of the routes that are asked for.
func (f *fleet) live() []string {
	var out []string
	for _, r := range f.routes[:min(liveRoutes, len(f.routes))] {
		out = append(out, r.Name)
	}
	return out
}

// check asks for a route whose endpoint is one of the backends: either is right,
// since both are there all the time.
func (f *fleet) check(i int, ask func() (answer, error)) string {
	a, err := ask()
	if err != nil {
		return err.Error()
	}
	for _, b := range f.l.backends {
		if a.String() == f.answer(i, b.name) {
			return ""
		}
	}
	return a.String()
}

func (f *fleet) answer(i int, backend string) string {
	return fmt.Sprintf("200 %s %s %s", backend, f.routes[i].Name, askedPath)
}

// churn edits slices at a steady rate.
func (f *fleet) churn(ctx context.Context, rate int, d time.Duration) (load, error) {
	return f.l.measure(ctx, func() (int, error) {
		due := time.NewTicker(time.Second / time.Duration(rate))
		defer due.Stop()
		before := f.edits
		for end := time.Now().Add(d); time.Now().Before(end); {
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-due.C:
			}
			if err := f.edit(ctx); err != nil {
				return 0, err
			}
		}
		return f.edits - before, f.l.controller.alive()
	})
}

// edit changes the endpoints of the next slice; every tenth time it is one that
// is asked for.
func (f *fleet) edit(ctx context.Context) error {
	n := f.edits
	f.edits++
	live := len(f.live())
	i := (n / 10) % live
	s := f.slices[i]
	if n%10 == 0 {
		port := int32(f.l.backends[f.turned(n/10)].port())
		s.Ports[0].Port = &port
	} else {
		if i = n % len(f.slices); i < live {
			i = len(f.slices) - 1
		}
		s = f.slices[i]
		s.Endpoints = append(s.Endpoints[1:], endpoints(f.address())...)
	}
	return f.l.Update(ctx, s)
}

// turned is which backend a live route gets at its turn, counted over all of
// them: the first was the first's.
func (f *fleet) turned(n int) int { return (n/len(f.live()) + 1) % 2 }

// arrived waits until each route that is asked for shows its last edit.
func (f *fleet) arrived(ctx context.Context) error {
	c := line{gateway: f.l.gateway}
	defer c.close()
	for i := range f.live() {
		want := f.l.backends[0]
		if int(*f.slices[i].Ports[0].Port) == f.l.backends[1].port() {
			want = f.l.backends[1]
		}
		if err := f.l.await(ctx, func() (string, error) {
			a, err := c.get(hostname(f.routes[i].Name), askedPath)
			if err != nil || a.String() == f.answer(i, want.name) {
				return "", err
			}
			return fmt.Sprintf("%s, want one of backend %s: its last edit is not served", a, want.name), nil
		}); err != nil {
			return err
		}
	}
	return nil
}
