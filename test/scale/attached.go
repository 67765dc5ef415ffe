//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// attachedResult is what attaching many routes at once came to.
type attachedResult struct {
	Routes        int     `json:"routes"`
	CreateMS      float64 `json:"create_ms"`
	SettleMS      float64 `json:"settle_ms"` // from the last create's answer to the last status
	GatewayWrites int     `json:"gateway_writes"`
	RouteWrites   int     `json:"route_writes"`

	DeleteMS       float64 `json:"delete_ms"`
	TeardownMS     float64 `json:"teardown_ms"` // from the delete's answer to a count of 0
	TeardownWrites int     `json:"teardown_writes"`
}

// mostGatewayWrites bounds the writes of a Gateway to which 1,000 routes attach,
// and from which they go.
const mostGatewayWrites = 20

func (r attachedResult) problems() []string {
	var out []string
	if r.GatewayWrites > mostGatewayWrites {
		out = append(out, fmt.Sprintf("%d writes of the Gateway while routes attached, %d at most are good", r.GatewayWrites, mostGatewayWrites))
	}
	if r.TeardownWrites > mostGatewayWrites {
		out = append(out, fmt.Sprintf("%d writes while routes were deleted, %d at most are good", r.TeardownWrites, mostGatewayWrites))
	}
	if r.RouteWrites != r.Routes {
		out = append(out, fmt.Sprintf("%d writes of %d routes, want one each", r.RouteWrites, r.Routes))
	}
	return out
}

// runAttached has n routes attach as fast as the API server takes them, and go
// again.
func (l *lab) runAttached(ctx context.Context, n int) (r attachedResult, err error) {
	const ns = "attached"
	r.Routes = n
	if err := l.furnish(ctx, ns); err != nil {
		return r, err
	}
	w, err := l.witness(ctx, ns)
	if err != nil {
		return r, err
	}
	defer w.stop()
	began := time.Now()
	if err := l.createRoutes(ctx, ns, n); err != nil {
		return r, err
	}
	created := time.Now()
	settled, err := w.settled(ctx, n, n)
	if err != nil {
		return r, err
	}
	r.CreateMS, r.SettleMS = ms(created.Sub(began)), ms(max(0, settled.Sub(created)))
	if err := sleep(ctx, 2*time.Second); err != nil { // a further write would be one too many
		return r, err
	}
	all, err := l.writes(began)
	if err != nil {
		return r, err
	}
	r.GatewayWrites, r.RouteWrites = count(all, "gateways"), count(all, "httproutes")

	began = time.Now()
	if err := l.DeleteAllOf(ctx, new(gatewayv1.HTTPRoute), client.InNamespace(ns)); err != nil {
		return r, err
	}
	deleted := time.Now()
	if settled, err = w.settled(ctx, 0, n); err != nil {
		return r, err
	}
	r.DeleteMS, r.TeardownMS = ms(deleted.Sub(began)), ms(max(0, settled.Sub(deleted)))
	if err := sleep(ctx, 2*time.Second); err != nil {
		return r, err
	}
	if all, err = l.writes(began); err != nil {
		return r, err
	}
	r.TeardownWrites = len(all)
	return r, l.remove(ctx, ns)
}

// shared is the Service of the routes that have none of their own.
const shared = "shared"

// furnish makes a namespace with a Service of the first backend.
func (l *lab) furnish(ctx context.Context, ns string) error {
	a := l.backends[0]
	for _, o := range []client.Object{newNamespace(ns), newService(ns, shared), newSlice(ns, shared, a.port(), a.host())} {
		if err := l.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// createRoutes makes n routes to the shared Service, several at once.
func (l *lab) createRoutes(ctx context.Context, ns string, n int) error {
	return each(ctx, n, func(i int) error {
		return l.Create(ctx, newRoute(ns, fmt.Sprintf("%s-%d", ns, i), shared))
	})
}

// witness sees the status of the Gateway and of the routes in one namespace. It
// is told of each version, so it asks nothing.
type witness struct {
	gateways, routes watch.Interface
	news             chan struct{} // something changed, or the watches ended

	mu    sync.Mutex
	count int             // that the Gateway has
	said  map[string]bool // routes that were accepted, whether they still are or not
	at    time.Time       // of the last change
	ended bool
}

func (l *lab) witness(ctx context.Context, ns string) (*witness, error) {
	w := &witness{news: make(chan struct{}, 1), count: -1, said: make(map[string]bool)}
	var err error
	if w.gateways, err = l.Watch(ctx, new(gatewayv1.GatewayList), client.InNamespace(home)); err != nil {
		return nil, err
	}
	if w.routes, err = l.Watch(ctx, new(gatewayv1.HTTPRouteList), client.InNamespace(ns)); err != nil {
		w.gateways.Stop()
		return nil, err
	}
	go w.run() // the API server ends the watch of who does not listen
	return w, nil
}

// stop ends the watches.
func (w *witness) stop() {
	w.gateways.Stop()
	w.routes.Stop()
}

// run takes the events until the watches end.
func (w *witness) run() {
	for open := true; open; {
		var e watch.Event
		select {
		case e, open = <-w.gateways.ResultChan():
		case e, open = <-w.routes.ResultChan():
		}
		w.mu.Lock()
		switch o := e.Object.(type) {
		case *gatewayv1.Gateway:
			if n := attachedRoutes(o); n != w.count {
				w.count, w.at = n, time.Now()
			}
		case *gatewayv1.HTTPRoute:
			if !w.said[o.Name] && isAccepted(o) {
				w.said[o.Name], w.at = true, time.Now()
			}
		}
		w.ended = !open
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// settled returns when the Gateway counted n routes and so many had said that
// they are accepted.
func (w *witness) settled(ctx context.Context, n, accepted int) (time.Time, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		w.mu.Lock()
		count, said, at, ended := w.count, len(w.said), w.at, w.ended
		w.mu.Unlock()
		switch {
		case count == n && said >= accepted:
			return at, nil
		case ended:
			return at, errors.New("the API server ended a watch")
		}
		select {
		case <-w.news:
		case <-ctx.Done():
			return at, context.Cause(ctx)
		case <-limit.C:
			return at, fmt.Errorf("the Gateway counts %d routes, want %d; %d routes are accepted, want %d", count, n, said, accepted)
		}
	}
}

// isAccepted tells whether the route's only parent has accepted its last
// generation and resolved its references.
func isAccepted(r *gatewayv1.HTTPRoute) bool {
	if len(r.Status.Parents) != 1 {
		return false
	}
	holds := make(map[string]bool)
	for _, c := range r.Status.Parents[0].Conditions {
		holds[c.Type] = c.Status == "True" && c.ObservedGeneration == r.Generation
	}
	return holds[string(gatewayv1.RouteConditionAccepted)] && holds[string(gatewayv1.RouteConditionResolvedRefs)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
