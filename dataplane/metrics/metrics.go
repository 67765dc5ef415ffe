package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Options configure a Metrics. Zero values mean the defaults; Loops is required.
type Options struct {
	// Loops is the number of event loops, 1 or more.
	Loops int
	// MaxRoutes is the number of routes that have a label of their own; default
	// 1,000. The rest are counted together as "other".
	MaxRoutes int
	// MaxClusters is the same for clusters; default 1,000.
	MaxClusters int
	// Version goes to headgate_build_info.
	Version string
	// Reactor returns the reactor's own counters of one loop; it is called by
	// scrapes, from any goroutine. May be nil.
	Reactor func(loop int) ReactorStats
	// Accepts returns how many accepts failed and how many connections were closed
	// for want of descriptors; it is called by scrapes, from any goroutine. May be
	// nil.
	Accepts func() (failed, shed uint64)
	// Handover returns what was handed over so far; it is called by scrapes, from
	// any goroutine. May be nil.
	Handover func() HandoverStats
	// Guard returns the state of the process's own limits; it is called by scrapes,
	// from any goroutine. May be nil.
	Guard func() GuardStats
	// Stages returns the stages of the pipeline; it is called by scrapes, from any
	// goroutine. May be nil.
	Stages func() []StageStats
	// AccessLog returns how many entries were written and dropped; it is called
	// by scrapes, from any goroutine. May be nil.
	AccessLog func() (written, dropped uint64)
}

// ReactorStats are what the reactor counts on one loop.
type ReactorStats struct {
	Conns   int64         // open connections, to clients and upstreams
	Busy    time.Duration // CPU time of the loop's thread since the start
	Events  uint64        // that the poller reported
	Wakeups uint64        // of those, wake-ups by other threads
	Panics  uint64        // callbacks that panicked
}

// HandoverStats tell of sockets that pass from process to process.
type HandoverStats struct {
	Taken, Given uint64 // hand-overs to this process, and by it
	Resumed      uint64 // successors that were lost
	Refused      uint64 // processes that were refused
	Sockets      int    // that this process got
	Accepting    bool   // no other process serves in its place
}

// GuardStats tell of the limits of the process.
type GuardStats struct {
	Connections, Memory int64              // the limits; 0: none
	Closed              string             // the limit for which nothing is accepted; "" while all is well
	Shuts               map[string]float64 // how often accepting stopped, by limit
}

// StageStats are what was measured of one stage in the last seconds, and what
// the model says of it. Times are in seconds.
type StageStats struct {
	Stage                string  // S1 to S5, loop
	Lambda               float64 // arrivals per second
	Service              float64 // mean
	Wait                 float64 // mean
	ArrivalCV, ServiceCV float64
	Rho                  float64
	Predicted            float64 // mean time in the stage
}

const (
	defaultMaxRoutes   = 1000
	defaultMaxClusters = 1000
)

// Metrics are the data plane's counters and the registry that shows them.
type Metrics struct {
	opts      Options
	registry  *prometheus.Registry
	descs     []*prometheus.Desc // by family
	loops     []*Loop
	unmatched *Route
	overflow  *Route              // of routes beyond MaxRoutes
	shared    byLoop[ClusterLoop] // of clusters beyond MaxClusters

	mu       sync.Mutex // guards the maps; never taken on a loop
	routes   map[string]*Route
	clusters map[string]*Cluster
	own      int // clusters with a label of their own
}

// New returns metrics in a registry of their own, beside those of the Go
// runtime and of the process.
func New(o Options) (*Metrics, error) {
	if o.Loops < 1 {
		return nil, errors.New("metrics: at least one loop is needed")
	}
	if o.MaxRoutes < 0 || o.MaxClusters < 0 {
		return nil, errors.New("metrics: negative bound")
	}
	if o.MaxRoutes == 0 {
		o.MaxRoutes = defaultMaxRoutes
	}
	if o.MaxClusters == 0 {
		o.MaxClusters = defaultMaxClusters
	}
	m := &Metrics{
		opts:      o,
		registry:  prometheus.NewRegistry(),
		descs:     describe(),
		loops:     make([]*Loop, o.Loops),
		unmatched: newRoute("none", o.Loops),
		overflow:  newRoute(other, o.Loops),
		shared:    make(byLoop[ClusterLoop], o.Loops),
		routes:    make(map[string]*Route),
		clusters:  make(map[string]*Cluster),
	}
	for i := range m.loops {
		m.loops[i] = new(Loop)
	}
	err := errors.Join(
		m.registry.Register(m),
		m.registry.Register(collectors.NewGoCollector()),
		m.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	return m, err
}

// Registry returns the registry, to be served, and for others to add to.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Loop returns the counters of loop i, from 0.
func (m *Metrics) Loop(i int) *Loop { return m.loops[i] }

// Route returns the counters of a route, "namespace/name", and makes them when
// they are new. It takes a lock and may allocate: bind the result when the table
// is built. A route that came when MaxRoutes others had their label keeps to the
// shared counters until it is asked for again.
func (m *Metrics) Route(name string) *Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.routes[name]; r != nil {
		return r
	}
	if len(m.routes) >= m.opts.MaxRoutes {
		return m.overflow
	}
	r := newRoute(label(name), m.opts.Loops)
	m.routes[name] = r
	return r
}

// Unmatched returns the counters of requests that no route matched; their route
// label is "none".
func (m *Metrics) Unmatched() *Route { return m.unmatched }

// RetainRoutes drops the series of the routes for which keep returns false. What
// still observes to a dropped one is not shown any more.
func (m *Metrics) RetainRoutes(keep func(name string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.routes {
		if !keep(name) {
			delete(m.routes, name)
		}
	}
}

// Cluster returns the counters of a cluster, "namespace/service:port", and makes
// them when they are new. It takes a lock and may allocate: call it when the
// cluster is made.
func (m *Metrics) Cluster(name string) *Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.clusters[name]; c != nil {
		return c
	}
	c := &Cluster{name: other, loops: m.shared}
	if m.own < m.opts.MaxClusters {
		m.own++
		c.name, c.loops = label(name), make(byLoop[ClusterLoop], m.opts.Loops)
	}
	m.clusters[name] = c
	return c
}

// RetainClusters drops the series of the clusters for which keep returns false.
func (m *Metrics) RetainClusters(keep func(name string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range m.clusters {
		if keep(name) {
			continue
		}
		delete(m.clusters, name)
		if c.name != other {
			m.own--
		}
	}
}
