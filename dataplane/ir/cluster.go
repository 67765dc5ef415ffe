package ir

import (
	"net/netip"
	"time"
)

// Cluster is one upstream: a Service port and its endpoints. All routes that
// name the Service port share it.
type Cluster struct {
	// Name is "namespace/service:port".
	Name string
	// Protocol is what the endpoints speak.
	Protocol UpstreamProtocol
	// Endpoints are sorted by Address, which is unique. None means 503.
	Endpoints []Endpoint
	// Balance picks the endpoint; HashOn is the key of a consistent hash.
	Balance Balance
	HashOn  HashOn
	// Ejection takes endpoints out that fail requests.
	Ejection Ejection
	// Check takes endpoints out that fail checks; nil means no checks.
	Check *HealthCheck
	// Retries bounds the further tries of requests.
	Retries RetryBudget
	// SlowStart is how long an endpoint that joins others takes to get its full
	// share, beginning with a tenth; 0 means none.
	SlowStart time.Duration
	// Pool bounds the connections to the cluster.
	Pool Pool
	// Adaptive bounds the wait for an answer by what the cluster usually takes.
	Adaptive AdaptiveTimeout
	// Pressure says what happens to requests that the pool has no place for.
	Pressure Pressure
}

// UpstreamProtocol is what a cluster's endpoints speak.
type UpstreamProtocol uint8

// The upstream protocols.
const (
	// UpstreamHTTP1 is HTTP/1.1 in clear; upgrades are allowed.
	UpstreamHTTP1 UpstreamProtocol = iota + 1
)

// Balance is the way in which a cluster picks an endpoint.
type Balance uint8

// The balancing policies.
const (
	// BalanceLeastRequest takes the less busy one of two endpoints drawn by
	// weight (power of two choices).
	BalanceLeastRequest Balance = iota
	// BalanceRoundRobin takes the endpoints in turn, by weight, without bursts.
	BalanceRoundRobin
	// BalancePeakEWMA takes the one of two endpoints drawn by weight that promises
	// the shorter wait: its moving average of response times, which follows peaks
	// at once, times the requests under way at it.
	BalancePeakEWMA
	// BalanceConsistentHash sends equal keys to the same endpoint, and moves as
	// few keys as possible when endpoints come and go.
	BalanceConsistentHash
)

// Endpoint is one address of a cluster.
type Endpoint struct {
	// Address is "ip:port", or "name:port" for a name that the data plane
	// resolves.
	Address string
	// AddrPort is the parsed Address; the zero value when Address has a name.
	AddrPort netip.AddrPort
	// Weight is its share among the cluster's endpoints, 1 to 1,000,000; 0
	// means 1.
	Weight uint32
	// Draining endpoints finish what they have and get nothing new.
	Draining bool
}

// Pool bounds a cluster's connections. Zero values mean the defaults.
type Pool struct {
	// Size is the most requests that are under way at the cluster at once, over
	// all loops (n_pool of the paper's Eq. 8); 1 to 1,000,000, default 1,024.
	Size int
	// ConnectTimeout bounds the connection's setup; default 5 s.
	ConnectTimeout time.Duration
	// ResponseTimeout bounds the time from the written request to the
	// response's head; default 60 s. Negative is off.
	ResponseTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept; default 60 s.
	IdleTimeout time.Duration
	// MaxAge is the age after which a connection is not used again; default
	// none.
	MaxAge time.Duration
	// Warm is how many unused connections each loop opens to an endpoint when it
	// joins, so that the first requests find them; 0 to 1,000, default none.
	Warm int
}
