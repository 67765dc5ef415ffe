package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Family describes one metric.
type Family struct {
	Name   string
	Type   string // counter, gauge, histogram or summary
	Labels []string
	Help   string
}

// family is the index of a Family in families.
type family int

// The families, in the order of their documentation.
const (
	buildInfo family = iota
	requestsTotal
	requestDuration
	upstreamActive
	upstreamHeld
	upstreamHeldBytes
	upstreamIdle
	upstreamPoolSize
	upstreamLimit
	upstreamPressure
	upstreamCapacity
	upstreamRate
	upstreamShed
	backpressure
	upstreamResponse
	upstreamConnects
	upstreamConnectFailures
	upstreamTimeouts
	upstreamDeadline
	upstreamEstimate
	upstreamCensored
	upstreamRetries
	upstreamRetriesRefused
	upstreamEjections
	connections
	connectionsAccepted
	loopRequests
	receivedBytes
	sentBytes
	upgradesOpen
	tlsHandshakes
	proxyRefused
	clientErrors
	localReplies
	loopConnections
	loopBusy
	loopEvents
	loopWakeups
	loopPanics
	acceptErrors
	acceptShed
	accepting
	handovers
	handoverSockets
	handoverResumed
	handoverRefused
	limitConnections
	limitMemory
	limitReached
	limitShuts
	stageLambda
	stageService
	stageWait
	stagePredicted
	stageRho
	stageArrivalCV
	stageServiceCV
	accessLogEntries
	accessLogDropped
)

const (
	typeCounter   = "counter"
	typeGauge     = "gauge"
	typeHistogram = "histogram"
	typeSummary   = "summary"
)

// families are all that a Metrics collects itself.
var families = [...]Family{
	buildInfo:       {"headgate_build_info", typeGauge, []string{"version", "go_version"}, "Always 1; the labels say what runs."},
	requestsTotal:   {"headgate_requests_total", typeCounter, []string{"route", "code"}, "Requests that ended, by route and by the status that the client got."},
	requestDuration: {"headgate_request_duration_seconds", typeHistogram, []string{"route"}, "Time from a request's first byte to its response's last."},

	upstreamActive:          {"headgate_upstream_requests_active", typeGauge, []string{"cluster"}, "Requests under way at the cluster."},
	upstreamHeld:            {"headgate_upstream_requests_held", typeGauge, []string{"cluster"}, "Requests that are held until the cluster's pool has a place for them."},
	upstreamHeldBytes:       {"headgate_upstream_held_bytes", typeGauge, []string{"cluster"}, "Memory that held requests take."},
	upstreamIdle:            {"headgate_upstream_connections_idle", typeGauge, []string{"cluster"}, "Unused connections in the cluster's pool."},
	upstreamPoolSize:        {"headgate_upstream_pool_size", typeGauge, []string{"cluster"}, "The most requests that may be under way at the cluster."},
	upstreamLimit:           {"headgate_upstream_limit", typeGauge, []string{"cluster"}, "The most requests that may be under way now: the pool's size, or less while its last places are paced."},
	upstreamPressure:        {"headgate_upstream_pressure", typeGauge, []string{"cluster"}, "State of the cluster's gate: 0 calm, 1 pacing, 2 holding, 3 shedding."},
	upstreamCapacity:        {"headgate_upstream_capacity", typeGauge, []string{"cluster"}, "Requests per second that the cluster can do (Lambda_max), when last measured; 0 before."},
	upstreamRate:            {"headgate_upstream_pace", typeGauge, []string{"cluster"}, "Further places per second that were given out above the threshold (Eq. 9), when last measured."},
	upstreamShed:            {"headgate_upstream_shed_total", typeCounter, []string{"cluster", "reason"}, "Requests that were answered 503 for pressure: full, share (of one client), timeout (held for too long), gone (its client ended its side while it was held)."},
	backpressure:            {"headgate_backpressure_propagation_seconds", typeHistogram, []string{"cluster"}, "Time from the closing of the cluster's gate to the first client whose reading was paused (T_bp)."},
	upstreamResponse:        {"headgate_upstream_response_seconds", typeSummary, []string{"cluster"}, "Time from the written request to the response's head: sum and count."},
	upstreamConnects:        {"headgate_upstream_connects_total", typeCounter, []string{"cluster"}, "Connections that were opened to the cluster."},
	upstreamConnectFailures: {"headgate_upstream_connect_failures_total", typeCounter, []string{"cluster"}, "Connections to the cluster that did not come about."},
	upstreamTimeouts:        {"headgate_upstream_timeouts_total", typeCounter, []string{"cluster", "kind"}, "Deadlines that passed: wait (for a place in the pool), connect, response (its head), adaptive (either of them)."},
	upstreamDeadline:        {"headgate_upstream_deadline_seconds", typeGauge, []string{"cluster"}, "The adaptive timeout of a request that is sent now."},
	upstreamEstimate:        {"headgate_upstream_estimate_seconds", typeGauge, []string{"cluster"}, "The adaptive timeout's estimate of the response time (Eq. 13)."},
	upstreamCensored:        {"headgate_upstream_censored_total", typeCounter, []string{"cluster"}, "Answers that did not come in time, of which the estimate learned."},
	upstreamRetries:         {"headgate_upstream_retries_total", typeCounter, []string{"cluster"}, "Requests that were sent a further time."},
	upstreamRetriesRefused:  {"headgate_upstream_retries_refused_total", typeCounter, []string{"cluster"}, "Further tries that the retry budget did not allow."},
	upstreamEjections:       {"headgate_upstream_ejections_total", typeCounter, []string{"cluster"}, "Endpoints that were taken out for a while because they failed too many requests in a row."},

	connections:         {"headgate_connections", typeGauge, []string{"loop"}, "Open connections from clients."},
	connectionsAccepted: {"headgate_connections_accepted_total", typeCounter, []string{"loop"}, "Connections from clients that the loop was given."},
	loopRequests:        {"headgate_loop_requests_total", typeCounter, []string{"loop"}, "Requests whose head was complete."},
	receivedBytes:       {"headgate_received_bytes_total", typeCounter, nil, "Bytes from clients, as they came from the sockets."},
	sentBytes:           {"headgate_sent_bytes_total", typeCounter, nil, "Bytes to clients, as they went to the sockets."},
	upgradesOpen:        {"headgate_upgrades", typeGauge, nil, "Open tunnels: Upgrade, CONNECT."},
	tlsHandshakes:       {"headgate_tls_handshakes_total", typeCounter, []string{"result"}, "TLS handshakes with clients that ended: ok, failed."},
	proxyRefused:        {"headgate_proxy_protocol_refused_total", typeCounter, []string{"reason"}, "Connections that were closed for want of a good header of the PROXY protocol: untrusted (the peer may not speak it), missing, malformed, checksum, too_long, incomplete, timeout."},
	clientErrors:        {"headgate_client_errors_total", typeCounter, []string{"reason"}, "Requests that their clients spoilt."},
	localReplies:        {"headgate_local_replies_total", typeCounter, []string{"reason"}, "Responses that the gateway made itself."},

	loopConnections:  {"headgate_loop_connections", typeGauge, []string{"loop"}, "Open connections of the loop, to clients and upstreams."},
	loopBusy:         {"headgate_loop_busy_seconds_total", typeCounter, []string{"loop"}, "CPU time of the loop's thread, with the kernel's share; the rate is its utilisation, 0 to 1."},
	loopEvents:       {"headgate_loop_events_total", typeCounter, []string{"loop"}, "Events that the loop's poller reported."},
	loopWakeups:      {"headgate_loop_wakeups_total", typeCounter, []string{"loop"}, "Of these events, those by which other threads woke the loop: connections from the acceptor, changes of the configuration. Requests on open connections need none."},
	loopPanics:       {"headgate_loop_panics_total", typeCounter, []string{"loop"}, "Callbacks that panicked; each ended its connection."},
	acceptErrors:     {"headgate_accept_errors_total", typeCounter, nil, "Accepts that failed for want of descriptors or memory; each is followed by a pause."},
	acceptShed:       {"headgate_accept_shed_total", typeCounter, nil, "Connections that were closed at once because no descriptor was left."},
	accepting:        {"headgate_accepting", typeGauge, nil, "1 while the process accepts connections, 0 when another one was handed the sockets over and serves."},
	handovers:        {"headgate_handovers_total", typeCounter, []string{"direction"}, "Hand-overs of the listening sockets: in (to this process), out (to the next one)."},
	handoverSockets:  {"headgate_handover_sockets", typeGauge, nil, "Listening sockets that this process got from the one before."},
	handoverResumed:  {"headgate_handover_resumed_total", typeCounter, nil, "Times that the next process was lost and this one accepted again."},
	handoverRefused:  {"headgate_handover_refused_total", typeCounter, nil, "Processes that asked for the sockets and were refused."},
	limitConnections: {"headgate_connections_limit", typeGauge, nil, "The most clients that may be connected; 0: no limit."},
	limitMemory:      {"headgate_memory_limit_bytes", typeGauge, nil, "Bytes of memory close to which no connection is accepted; 0: no limit."},
	limitReached:     {"headgate_limit_reached", typeGauge, []string{"limit"}, "1 while no connection is accepted because of the limit: connections, memory."},
	limitShuts:       {"headgate_limit_reached_total", typeCounter, []string{"limit"}, "Times that accepting stopped because of the limit."},
	stageLambda:      {"headgate_stage_arrival_rate", typeGauge, []string{"stage"}, "Arrivals per second at a stage of the pipeline (lambda), over the last 10 s: S1 to S5 of the design, loop for what runs of S2, S3 and S5 on the loops."},
	stageService:     {"headgate_stage_service_seconds", typeGauge, []string{"stage"}, "Mean service time of a stage (1/mu)."},
	stageWait:        {"headgate_stage_wait_seconds", typeGauge, []string{"stage"}, "Mean wait before the service of a stage (W_q); S4: for a place in a pool."},
	stagePredicted:   {"headgate_stage_predicted_seconds", typeGauge, []string{"stage"}, "What the G/G/c model says of wait and service (W); 0 where it does not apply."},
	stageRho:         {"headgate_stage_utilisation", typeGauge, []string{"stage"}, "Utilisation of a stage's servers (rho)."},
	stageArrivalCV:   {"headgate_stage_arrival_cv", typeGauge, []string{"stage"}, "Coefficient of variation of the times between arrivals."},
	stageServiceCV:   {"headgate_stage_service_cv", typeGauge, []string{"stage"}, "Coefficient of variation of the services."},
	accessLogEntries: {"headgate_access_log_entries_total", typeCounter, nil, "Access log entries that were written."},
	accessLogDropped: {"headgate_access_log_dropped_total", typeCounter, nil, "Access log entries that were dropped because the output was too slow."},
}

// Families returns what a Metrics collects itself, in the order of the
// documentation.
func Families() []Family { return append([]Family(nil), families[:]...) }

// describe makes the descriptors of families.
func describe() []*prometheus.Desc {
	descs := make([]*prometheus.Desc, len(families))
	for i, f := range families {
		descs[i] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return descs
}

// label makes s fit for a label's value, which must be UTF-8.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
