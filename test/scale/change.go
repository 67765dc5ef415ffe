//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// changeResult is what clients saw while routes changed.
type changeResult struct {
	Others    int            `json:"other_routes"`
	Routes    int            `json:"routes"`
	Seconds   float64        `json:"seconds"`
	Changes   int            `json:"changes"`
	Kinds     map[string]int `json:"kinds"`
	Requests  int            `json:"requests"`
	PerSecond float64        `json:"requests_per_s"`
	Wrong     []string       `json:"wrong"` // errors, too
	Served    spread         `json:"served"`
}

func (r changeResult) problems() []string {
	var out []string
	if len(r.Wrong) > 0 {
		out = append(out, fmt.Sprintf("%d wrong answers, such as %s", len(r.Wrong), r.Wrong[0]))
	}
	if r.Changes < len(variants) || r.Requests == 0 {
		out = append(out, fmt.Sprintf("%d changes and %d requests: too few to say anything", r.Changes, r.Requests))
	}
	return out
}

// state is one state of a route: what a request for its path must be answered.
type state struct {
	kind    string
	answers []string
	stored  time.Time // when the API server had answered the change
}

// variant is a way for a route to be. mark is different in each state of a
// route, and so is every answer.
type variant struct {
	kind  string
	build func(mark string) (rules []gatewayv1.HTTPRouteRule, answers []string)
}

// askedPath is what the load asks for.
const askedPath = "/shop/cart"

// variants go through what a route can change: its backends, their weights, its
// matches, its filters, and whether it has a backend at all.
var variants = []variant{
	{"backend a", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		return rules(rule(mark, ref("a", 1))), []string{"200 a " + mark + " " + askedPath}
	}},
	{"backend b", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		return rules(rule(mark, ref("b", 1))), []string{"200 b " + mark + " " + askedPath}
	}},
	{"weights", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		return rules(rule(mark, ref("a", 1), ref("b", 3))), []string{"200 a " + mark + " " + askedPath, "200 b " + mark + " " + askedPath}
	}},
	{"rewrite", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		r := rule(mark, ref("a", 1))
		path := "/" + mark
		r.Filters = append(r.Filters, gatewayv1.HTTPRouteFilter{
			Type: gatewayv1.HTTPRouteFilterURLRewrite,
			URLRewrite: &gatewayv1.HTTPURLRewriteFilter{Path: &gatewayv1.HTTPPathModifier{
				Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &path,
			}},
		})
		return rules(r), []string{"200 a " + mark + " " + path}
	}},
	{"a more specific rule", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		exact := rule(mark, ref("b", 1))
		exact.Matches = []gatewayv1.HTTPRouteMatch{match(gatewayv1.PathMatchExact, askedPath)}
		return rules(rule("other-"+mark, ref("a", 1)), exact), []string{"200 b " + mark + " " + askedPath}
	}},
	{"redirect", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		path, code := "/"+mark, 302
		host := gatewayv1.PreciseHostname("elsewhere.example.com")
		scheme, port := "https", gatewayv1.PortNumber(443)
		return rules(gatewayv1.HTTPRouteRule{Filters: []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestRedirect,
			RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{
				Scheme: &scheme, Hostname: &host, Port: &port, StatusCode: &code,
				Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &path},
			},
		}}}), []string{"302 https://elsewhere.example.com" + path}
	}},
	{"another prefix", func(mark string) ([]gatewayv1.HTTPRouteRule, []string) {
		shop := rule(mark, ref("a", 1))
		shop.Matches = []gatewayv1.HTTPRouteMatch{match(gatewayv1.PathMatchPathPrefix, "/shop")}
		return rules(shop, rule("other-"+mark, ref("b", 1))), []string{"200 a " + mark + " " + askedPath}
	}},
}

func rules(r ...gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteRule { return r }

func rule(mark string, refs ...gatewayv1.HTTPBackendRef) gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{Filters: []gatewayv1.HTTPRouteFilter{stamp(mark)}, BackendRefs: refs}
}

func ref(service string, weight int32) gatewayv1.HTTPBackendRef { return backendRef(service, weight) }

func match(kind gatewayv1.PathMatchType, value string) gatewayv1.HTTPRouteMatch {
	return gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}}
}

// runChange changes routes for a while under load, as fast as they are served.
func (l *lab) runChange(ctx context.Context, others, routes int, d time.Duration, rate int) (r changeResult, err error) {
	const ns = "change"
	r = changeResult{Others: others, Routes: routes, Kinds: make(map[string]int)}
	objects := []client.Object{newNamespace(ns)}
	for _, b := range l.backends {
		objects = append(objects, newService(ns, b.name), newSlice(ns, b.name, b.port(), b.host()))
	}
	book := newLedger(routes)
	list := make([]*gatewayv1.HTTPRoute, routes)
	for i := range list {
		list[i] = newRoute(ns, fmt.Sprintf("change-%d", i), "a")
		list[i].Spec.Rules = book.turn(i, 0)
		objects = append(objects, list[i])
	}
	for _, o := range objects {
		if err := l.Create(ctx, o); err != nil {
			return r, err
		}
	}
	names := make([]string, routes)
	for i := range names {
		names[i] = list[i].Name
	}
	// Each is served before the load begins: a 404 is wrong from now on.
	first := line{gateway: l.gateway}
	defer first.close()
	for i, name := range names {
		err := l.await(ctx, func() (string, error) {
			if a, err := first.get(hostname(name), askedPath); err != nil || !book.take(i, book.floor(i), a.String(), time.Now()) {
				return fmt.Sprintf("%s is not served: %v %v", name, a, err), nil
			}
			return "", nil
		})
		if err != nil {
			return r, err
		}
	}
	began := time.Now()
	stop := l.press(names, rate, func(i int, ask func() (answer, error)) string {
		low := book.floor(i)
		a, err := ask()
		if err != nil {
			return err.Error()
		}
		if !book.take(i, low, a.String(), time.Now()) {
			return fmt.Sprintf("%s, want %s", a, book.want(i, low))
		}
		return ""
	})
	err = l.keepChanging(ctx, list, book, began.Add(d), &r)
	r.Requests, r.Wrong = stop()
	r.Seconds = time.Since(began).Seconds()
	r.PerSecond = float64(r.Requests) / r.Seconds
	r.Served = newSpread(book.served)
	if err != nil {
		return r, err
	}
	for _, o := range list {
		if err := l.Delete(ctx, o); err != nil {
			return r, err
		}
	}
	return r, l.attached(ctx, others)
}

// keepChanging changes one route after the other. None is changed before its last
// change was seen.
func (l *lab) keepChanging(ctx context.Context, list []*gatewayv1.HTTPRoute, book *ledger, end time.Time, r *changeResult) error {
	for n := 0; time.Now().Before(end); n++ {
		i := n % len(list)
		limit := time.Now().Add(patience)
		for !book.seen(i) {
			if time.Now().After(limit) {
				return fmt.Errorf("%s: its last change is not served", list[i].Name)
			}
			if err := errors.Join(sleep(ctx, time.Millisecond), l.controller.alive()); err != nil {
				return err
			}
		}
		v := (n/len(list) + i + 1) % len(variants)
		base := list[i].DeepCopy()
		list[i].Spec.Rules = book.turn(i, v)
		if err := l.Patch(ctx, list[i], client.MergeFrom(base)); err != nil {
			return err
		}
		book.stored(i, time.Now())
		r.Changes++
		r.Kinds[variants[v].kind]++
	}
	return nil
}

// ledger knows what each route may answer: what it did last, or anything newer
// that it was told since. What one answer has shown, no later request may fall
// behind: the gateway has one table, and replaces it at once.
type ledger struct {
	mu     sync.Mutex
	states [][]state // by route
	low    []int     // the newest state that an answer has shown
	served []time.Duration
}

func newLedger(routes int) *ledger {
	return &ledger{states: make([][]state, routes), low: make([]int, routes)}
}

// turn adds a state before the API server is told, and returns its rules.
func (b *ledger) turn(i, v int) []gatewayv1.HTTPRouteRule {
	b.mu.Lock()
	defer b.mu.Unlock()
	mark := fmt.Sprintf("r%d-s%d", i, len(b.states[i]))
	rules, answers := variants[v].build(mark)
	b.states[i] = append(b.states[i], state{kind: variants[v].kind, answers: answers})
	return rules
}

// stored notes when the API server had taken the last state. It may be served
// already.
func (b *ledger) stored(i int, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.states[i]) - 1
	if b.low[i] == last {
		b.served = append(b.served, 0)
		return
	}
	b.states[i][last].stored = at
}

// floor is the oldest state that a request may see that begins now.
func (b *ledger) floor(i int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.low[i]
}

// seen tells whether an answer has shown the last state.
func (b *ledger) seen(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.low[i] == len(b.states[i])-1
}

// take tells whether a request that began when low was the floor may be answered
// so, and learns from it.
func (b *ledger) take(i, low int, got string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := len(b.states[i]) - 1; n >= low; n-- {
		s := b.states[i][n]
		for _, a := range s.answers {
			if a != got {
				continue
			}
			if n > b.low[i] {
				b.low[i] = n
				if !s.stored.IsZero() {
					b.served = append(b.served, now.Sub(s.stored))
				}
			}
			return true
		}
	}
	return false
}

// want lists what was allowed from a state on.
func (b *ledger) want(i, low int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, s := range b.states[i][low:] {
		out = append(out, s.answers...)
	}
	return out
}
