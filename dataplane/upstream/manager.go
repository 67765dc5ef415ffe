package upstream

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/pressure"
)

// Options configure a Manager.
type Options struct {
	// Loops are the data plane's loops, in the order of their indexes.
	Loops []Loop
	// Pool fills in what a cluster's own pool leaves at zero.
	Pool ir.Pool
	// Adaptive and Pressure do the same; they must be valid.
	Adaptive ir.AdaptiveTimeout
	Pressure ir.Pressure
	// Now is required: the time, as the loops see it, for what is not on a loop.
	Now func() time.Time
	// CPU returns how many requests per second the loops can do, 0 when it is not
	// known (Eq. 1 of the paper); may be nil.
	CPU func() float64
	// Limits bound the heads of responses.
	Limits http1.Limits
	// Metrics counts what happens to the clusters.
	Metrics *metrics.Metrics
	// Resolve looks a name up; nil means the system's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// OnResolveError hears of names that could not be resolved; may be nil.
	OnResolveError func(cluster, address string, err error)
	// OnEndpoint hears of endpoints that are taken out and come back, in a
	// goroutine of its own; may be nil.
	OnEndpoint func(EndpointEvent)
}

// Manager holds the clusters of a data plane. Its methods may be called from
// any goroutine.
type Manager struct {
	opts     Options
	resolver *resolver
	checker  *checker

	mu       sync.Mutex
	clusters map[string]*Cluster
	made     uint64     // clusters, ever
	sorted   []*Cluster // all of them, by name; nil since one came or went
}

// NewManager returns a Manager without clusters. Close ends its resolver and its
// health checks.
func NewManager(o Options) *Manager {
	m := &Manager{opts: o, checker: newChecker(), clusters: map[string]*Cluster{}}
	m.resolver = newResolver(o.Resolve, m.resolved)
	return m
}

// Close ends the resolver and the health checks. Clusters keep working.
func (m *Manager) Close() {
	m.resolver.close()
	m.checker.close()
}

// Cluster returns the cluster with the name, or nil.
func (m *Manager) Cluster(name string) *Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clusters[name]
}

// Clusters returns all clusters, sorted by name. The list is shared: it must not be
// changed.
func (m *Manager) Clusters() []*Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sorted == nil {
		m.sorted = slices.SortedFunc(maps.Values(m.clusters), func(a, b *Cluster) int { return strings.Compare(a.name, b.name) })
	}
	return m.sorted
}

// Update makes the clusters those of a snapshot. Clusters that are named again
// keep their identity, their pools and the connections to endpoints that stay.
// Clusters that are not named any more are kept for Retire, so that the routes
// that still use them can be replaced first.
func (m *Manager) Update(clusters []*ir.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := false // one may have come or gone
	for _, want := range clusters {
		c := m.clusters[want.Name]
		switch {
		case c == nil:
			c = m.newCluster(want)
			m.clusters[want.Name] = c
			m.sorted = nil
		case c.state.Load().ir == want:
			continue
		}
		names = names || needsNames(c.state.Load().ir) || needsNames(want)
		m.replace(c, want)
	}
	if names {
		m.resolver.watch(m.names())
	}
}

// Retire drops every cluster that is not in keep: their idle connections are
// closed. Requests that a loop has already matched by the last routes are still
// served, so a retired cluster keeps its endpoints.
func (m *Manager) Retire(keep []*ir.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.clusters) == len(keep) {
		return // Update has made all of them
	}
	named := make(map[string]bool, len(keep))
	for _, k := range keep {
		named[k.Name] = true
	}
	for name, c := range m.clusters {
		if named[name] {
			continue
		}
		delete(m.clusters, name)
		m.sorted = nil
		st := *c.state.Load()
		st.retired = true
		c.state.Store(&st)
		for _, e := range st.endpoints {
			m.checker.set(e, nil)
		}
		for i, sh := range c.made {
			m.opts.Loops[i].Post(func() { sh.forget(st.endpoints) })
		}
	}
	m.resolver.watch(m.names())
	m.opts.Metrics.RetainClusters(func(name string) bool { return named[name] })
}

func (m *Manager) newCluster(want *ir.Cluster) *Cluster {
	m.made++
	c := &Cluster{
		name: want.Name, instance: m.made, opts: &m.opts, shards: make([]atomic.Pointer[Shard], len(m.opts.Loops)),
		metrics: m.opts.Metrics.Cluster(want.Name),
	}
	pool := withDefaults(want.Pool, m.opts.Pool)
	var err error
	c.gate, err = pressure.New(pressure.Options{
		Start: m.opts.Now(), Loops: len(m.opts.Loops), CPU: m.opts.CPU, Limits: limitsOf(want.Pressure, m.opts.Pressure, pool.Size),
	})
	if err != nil {
		panic(fmt.Sprintf("upstream: %v: not validated, %+v", err, want))
	}
	c.state.Store(&clusterState{ir: want})
	c.metrics.Show(c.live)
	return c
}

// replace publishes the state that want asks for and closes the idle
// connections to endpoints that went.
func (m *Manager) replace(c *Cluster, want *ir.Cluster) {
	old := c.state.Load()
	byAddr := make(map[netip.AddrPort]*Endpoint, len(old.endpoints))
	for _, e := range old.endpoints {
		byAddr[e.addr] = e
	}
	next := &clusterState{ir: want, pool: withDefaults(want.Pool, m.opts.Pool), retries: withRetryDefaults(want.Retries), equal: true}
	next.adaptive = newAdaptive(m.opts.Now(), want.Adaptive, m.opts.Adaptive, next.pool, old.adaptive, len(m.opts.Loops))
	if err := c.gate.Update(limitsOf(want.Pressure, m.opts.Pressure, next.pool.Size)); err != nil {
		panic(fmt.Sprintf("upstream: %v: not validated, %+v", err, want))
	}
	var draining, joined []*Endpoint
	var sum, first uint64
	seen := map[netip.AddrPort]bool{}
	add := func(addr netip.AddrPort, spec ir.Endpoint) {
		if seen[addr] {
			return
		}
		seen[addr] = true
		e, known := byAddr[addr]
		if !known {
			e = &Endpoint{cluster: c, addr: addr, text: addr.String(), idle: make([]*idleList, len(m.opts.Loops))}
			if e.text == spec.Address {
				e.text = spec.Address // one string in memory
			}
		}
		if spec.Draining {
			draining = append(draining, e)
			return
		}
		if !known {
			joined = append(joined, e)
		}
		w := uint64(max(spec.Weight, 1))
		if first == 0 {
			first = w
		}
		next.equal = next.equal && w == first
		sum += w
		next.endpoints = append(next.endpoints, e)
		next.cumulative = append(next.cumulative, sum)
		next.seeds = append(next.seeds, Key([]byte(e.text)))
	}
	for _, spec := range want.Endpoints {
		if spec.AddrPort.IsValid() {
			add(spec.AddrPort, spec)
			continue
		}
		for _, addr := range m.resolver.lookup(spec.Address) {
			add(addr, spec)
		}
	}
	takers := next.endpoints
	next.endpoints = append(next.endpoints, draining...)
	// Only who joins others has to start slowly.
	if want.SlowStart > 0 && len(old.cumulative) > 0 {
		for _, e := range joined {
			e.joined.Store(m.opts.Now().UnixNano())
			c.special.Add(1)
		}
	}
	c.state.Store(next)
	c.metrics.SetPoolSize(next.pool.Size)
	for _, e := range takers {
		m.checker.set(e, want.Check)
	}
	for _, e := range draining {
		m.checker.set(e, nil)
	}

	var gone []*Endpoint
	for _, e := range old.endpoints {
		if !slices.Contains(next.endpoints, e) {
			m.checker.set(e, nil)
			e.leave()
			gone = append(gone, e)
		}
	}
	if next.pool.Warm > 0 && len(joined) > 0 {
		for i, loop := range m.opts.Loops {
			loop.Post(func() { c.Shard(i).warm(joined, next.pool.Warm) })
		}
	}
	for i, sh := range c.made {
		if len(gone) > 0 {
			m.opts.Loops[i].Post(func() { sh.forget(gone) })
		}
		if next.pool.Size > old.pool.Size || len(next.cumulative) > 0 && len(old.cumulative) == 0 {
			m.opts.Loops[i].Post(sh.serve)
		}
	}
}

// needsNames tells whether an endpoint must be resolved.
func needsNames(c *ir.Cluster) bool {
	return slices.ContainsFunc(c.Endpoints, func(e ir.Endpoint) bool { return !e.AddrPort.IsValid() })
}

// names returns the endpoint addresses of all clusters that need resolving.
func (m *Manager) names() []string {
	var out []string
	for _, c := range m.clusters {
		for _, e := range c.state.Load().ir.Endpoints {
			if !e.AddrPort.IsValid() {
				out = append(out, e.Address)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resolved is called by the resolver when the addresses of a name changed or a
// lookup failed.
func (m *Manager) resolved(address string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clusters {
		st := c.state.Load()
		uses := slices.ContainsFunc(st.ir.Endpoints, func(e ir.Endpoint) bool { return e.Address == address })
		switch {
		case !uses:
		case err != nil && m.opts.OnResolveError != nil:
			m.opts.OnResolveError(c.name, address, err)
		case err == nil:
			m.replace(c, st.ir)
		}
	}
}
