//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// idleResult is what the controller wrote while nothing happened.
type idleResult struct {
	Routes  int      `json:"routes"`
	Seconds float64  `json:"seconds"`
	Writes  []string `json:"writes"` // besides its lease
	Leases  int      `json:"lease_writes"`
	Load    load     `json:"load"`
}

func (r idleResult) problems() []string {
	var out []string
	if len(r.Writes) > 0 {
		out = append(out, fmt.Sprintf("%d writes while nothing happened, such as %s", len(r.Writes), r.Writes[0]))
	}
	if r.Leases == 0 {
		out = append(out, "the controller wrote no lease: the audit log is not about it")
	}
	return out
}

// settling is how long the controller may still write after the last change: a
// DataPlane tells what came with the traffic every 10 s at most, from samples of
// 2 s.
const settling = 13 * time.Second

// runIdle has n routes, and leaves all alone.
func (l *lab) runIdle(ctx context.Context, n int, quiet time.Duration) (r idleResult, err error) {
	const ns = "idle"
	r.Routes = n
	if err := l.furnish(ctx, ns); err != nil {
		return r, err
	}
	w, err := l.witness(ctx, ns)
	if err != nil {
		return r, err
	}
	defer w.stop()
	if err := l.createRoutes(ctx, ns, n); err != nil {
		return r, err
	}
	if _, err := w.settled(ctx, n, n); err != nil {
		return r, err
	}
	w.stop() // it costs the API server, too
	if err := sleep(ctx, settling); err != nil {
		return r, err
	}
	before, err := l.controller.use()
	if err != nil {
		return r, err
	}
	if err := sleep(ctx, quiet); err != nil {
		return r, err
	}
	after, err := l.controller.use()
	if err != nil {
		return r, err
	}
	r.Load = between(before, after)
	r.Seconds = r.Load.Seconds
	all, err := l.auditSince(before.at)
	if err != nil {
		return r, err
	}
	r.Leases = leases(all)
	for _, e := range ours(all) {
		r.Writes = append(r.Writes, describe(e))
	}
	return r, l.remove(ctx, ns)
}

func describe(e cluster.AuditEvent) string {
	return fmt.Sprintf("%s %s/%s of %s/%s: %d", e.Verb, e.Resource, e.Subresource, e.Namespace, e.Name, e.Code)
}
