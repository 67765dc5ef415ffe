package metrics

import (
	"maps"
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range m.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It reads the loops' counters while
// they go on counting: the values of one scrape may be some nanoseconds apart.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	s := scrape{m: m, ch: ch}
	s.gauge(buildInfo, 1, label(m.opts.Version), runtime.Version())
	m.mu.Lock()
	routes := slices.Collect(maps.Values(m.routes))
	clusters := slices.Collect(maps.Values(m.clusters))
	m.mu.Unlock()

	for _, r := range routes {
		s.route(r)
	}
	s.route(m.unmatched)
	s.route(m.overflow)
	sharedSize, sharedEjected := int64(0), uint64(0)
	for _, c := range clusters {
		if c.name == other {
			sharedSize += c.poolSize.Load()
			sharedEjected += c.ejected.Load()
			continue
		}
		s.cluster(c.name, c.loops, c.poolSize.Load(), c.ejected.Load())
		if live := c.live.Load(); live != nil {
			s.live(c.name, (*live)())
		}
	}
	s.cluster(other, m.shared, sharedSize, sharedEjected)
	s.perLoop()
	s.overLoops()
	if m.opts.Accepts != nil {
		failed, shed := m.opts.Accepts()
		s.counter(acceptErrors, float64(failed))
		s.counter(acceptShed, float64(shed))
	}
	if m.opts.Handover != nil {
		s.handover(m.opts.Handover())
	}
	if m.opts.Guard != nil {
		s.guard(m.opts.Guard())
	}
	if m.opts.Stages != nil {
		s.stages(m.opts.Stages())
	}
	if m.opts.AccessLog != nil {
		written, dropped := m.opts.AccessLog()
		s.counter(accessLogEntries, float64(written))
		s.counter(accessLogDropped, float64(dropped))
	}
}

// scrape is one Collect under way.
type scrape struct {
	m  *Metrics
	ch chan<- prometheus.Metric
}

func (s scrape) counter(f family, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.m.descs[f], prometheus.CounterValue, v, labels...)
}

func (s scrape) gauge(f family, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.m.descs[f], prometheus.GaugeValue, v, labels...)
}

// route sends the series of r: nothing before its first request.
func (s scrape) route(r *Route) {
	var durations histogram
	codes := make(map[string]float64)
	for sh := range r.shards.all {
		durations.add(&sh.durations, &sh.nanos)
		for i := range sh.codes {
			sh.codes[i].each(func(code uint16, n float64) { codes[strconv.Itoa(int(code))] += n })
		}
		addSeen(codes, "none", sh.unsent.value())
		addSeen(codes, other, sh.odd.value())
	}
	if len(codes) == 0 {
		return
	}
	for code, v := range codes {
		s.counter(requestsTotal, v, r.name, code)
	}
	s.histogram(requestDuration, &durations, r.name)
}

// histogram adds up the loops' counters of durations.
type histogram struct {
	n     [len(buckets) + 1]float64 // not cumulative
	nanos float64
}

func (h *histogram) add(n *[len(buckets) + 1]counter, nanos *counter) {
	for i := range n {
		h.n[i] += n[i].value()
	}
	h.nanos += nanos.value()
}

// seen tells that there was a duration.
func (h *histogram) seen() bool { return h.n != [len(buckets) + 1]float64{} }

// histogram sends h.
func (s scrape) histogram(f family, h *histogram, labels ...string) {
	var total uint64
	cumulative := make(map[float64]uint64, len(buckets))
	for i, bound := range buckets {
		total += uint64(h.n[i])
		cumulative[bound.Seconds()] = total
	}
	total += uint64(h.n[len(buckets)])
	s.ch <- prometheus.MustNewConstHistogram(s.m.descs[f], total, h.nanos/1e9, cumulative, labels...)
}

// addSeen adds v to the sum of key, unless it is zero.
func addSeen(sums map[string]float64, key string, v float64) {
	if v != 0 {
		sums[key] += v
	}
}

// cluster sends the series of one cluster; the shared one stays away until it
// has a cluster.
func (s scrape) cluster(name string, loops byLoop[ClusterLoop], poolSize int64, ejected uint64) {
	var active, idle, held, responses, nanos, connects, failures, retries, refused float64
	var expired [timeouts]float64
	var shed [sheds]float64
	var propagation histogram
	for l := range loops.all {
		active += l.active.level()
		idle += l.idle.level()
		held += l.held.level()
		responses += l.responses.value()
		nanos += l.responseNanos.value()
		connects += l.connects.value()
		failures += l.failures.value()
		retries += l.retries.value()
		refused += l.refused.value()
		for k := range expired {
			expired[k] += l.expired[k].value()
		}
		for k := range shed {
			shed[k] += l.shed[k].value()
		}
		propagation.add(&l.propagation, &l.propagationNanos)
	}
	if name == other && poolSize == 0 && connects == 0 && failures == 0 && active == 0 && held == 0 {
		return
	}
	s.gauge(upstreamActive, active, name)
	s.gauge(upstreamIdle, idle, name)
	s.gauge(upstreamHeld, held, name)
	s.gauge(upstreamPoolSize, float64(poolSize), name)
	s.ch <- prometheus.MustNewConstSummary(s.m.descs[upstreamResponse], uint64(responses), nanos/1e9, nil, name)
	s.counter(upstreamConnects, connects, name)
	s.counter(upstreamConnectFailures, failures, name)
	s.counter(upstreamRetries, retries, name)
	s.counter(upstreamRetriesRefused, refused, name)
	s.counter(upstreamEjections, float64(ejected), name)
	for k := range timeouts {
		s.counter(upstreamTimeouts, expired[k], name, k.String())
	}
	for k := range sheds {
		s.counter(upstreamShed, shed[k], name, k.String())
	}
	if propagation.seen() {
		s.histogram(backpressure, &propagation, name)
	}
}

// live sends what a cluster computes.
func (s scrape) live(name string, l ClusterLive) {
	s.gauge(upstreamHeldBytes, float64(l.HeldBytes), name)
	s.gauge(upstreamLimit, float64(l.Limit), name)
	s.gauge(upstreamPressure, float64(l.State), name)
	s.gauge(upstreamCapacity, l.Capacity, name)
	s.gauge(upstreamRate, l.Rate, name)
	if l.Timed {
		s.gauge(upstreamDeadline, l.Deadline.Seconds(), name)
		s.gauge(upstreamEstimate, l.Estimate.Seconds(), name)
		s.counter(upstreamCensored, float64(l.Censored), name)
	}
}

// guard sends the limits of the process.
func (s scrape) guard(g GuardStats) {
	s.gauge(limitConnections, float64(g.Connections))
	s.gauge(limitMemory, float64(g.Memory))
	for _, limit := range []string{"connections", "memory"} {
		reached := 0.0
		if g.Closed == limit {
			reached = 1
		}
		s.gauge(limitReached, reached, limit)
		s.counter(limitShuts, g.Shuts[limit], limit)
	}
}

// stages sends what was measured of the pipeline.
func (s scrape) stages(list []StageStats) {
	for _, x := range list {
		s.gauge(stageLambda, x.Lambda, x.Stage)
		s.gauge(stageService, x.Service, x.Stage)
		s.gauge(stageWait, x.Wait, x.Stage)
		s.gauge(stagePredicted, x.Predicted, x.Stage)
		s.gauge(stageRho, x.Rho, x.Stage)
		s.gauge(stageArrivalCV, x.ArrivalCV, x.Stage)
		s.gauge(stageServiceCV, x.ServiceCV, x.Stage)
	}
}

// perLoop sends what has the loop as its label.
func (s scrape) perLoop() {
	for i, l := range s.m.loops {
		loop := strconv.Itoa(i)
		s.gauge(connections, l.connections.level(), loop)
		s.counter(connectionsAccepted, l.accepted.value(), loop)
		s.counter(loopRequests, l.requests.value(), loop)
		if s.m.opts.Reactor == nil {
			continue
		}
		r := s.m.opts.Reactor(i)
		s.gauge(loopConnections, float64(r.Conns), loop)
		s.counter(loopBusy, r.Busy.Seconds(), loop)
		s.counter(loopEvents, float64(r.Events), loop)
		s.counter(loopWakeups, float64(r.Wakeups), loop)
		s.counter(loopPanics, float64(r.Panics), loop)
	}
}

// overLoops sends what is added up over the loops.
func (s scrape) overLoops() {
	var in, out, upgrades, good, bad float64
	errs, replies, refused := make(map[string]float64), make(map[string]float64), make(map[string]float64)
	for _, l := range s.m.loops {
		in += l.bytesIn.value()
		out += l.bytesOut.value()
		upgrades += l.upgrades.level()
		good += l.handshakes.value()
		bad += l.badHandshakes.value()
		l.clientErrors.each(func(reason string, n float64) { errs[label(reason)] += n })
		l.proxyRefused.each(func(reason string, n float64) { refused[label(reason)] += n })
		l.replies.each(func(reason string, n float64) { replies[label(reason)] += n })
	}
	s.counter(receivedBytes, in)
	s.counter(sentBytes, out)
	s.gauge(upgradesOpen, upgrades)
	s.counter(tlsHandshakes, good, "ok")
	s.counter(tlsHandshakes, bad, "failed")
	for reason, n := range refused {
		s.counter(proxyRefused, n, reason)
	}
	for reason, n := range errs {
		s.counter(clientErrors, n, reason)
	}
	for reason, n := range replies {
		s.counter(localReplies, n, reason)
	}
}

func (s scrape) handover(h HandoverStats) {
	on := 0.0
	if h.Accepting {
		on = 1
	}
	s.gauge(accepting, on)
	s.counter(handovers, float64(h.Taken), "in")
	s.counter(handovers, float64(h.Given), "out")
	s.gauge(handoverSockets, float64(h.Sockets))
	s.counter(handoverResumed, float64(h.Resumed))
	s.counter(handoverRefused, float64(h.Refused))
}
