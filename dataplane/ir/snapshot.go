package ir

import (
	"net/netip"
	"time"
)

// Snapshot is everything that one data plane serves. It is immutable once it
// was handed over; the zero value serves nothing and is valid.
type Snapshot struct {
	// Sockets are sorted by Name, which is unique.
	Sockets []*Socket
	// Clusters are sorted by Name, which is unique.
	Clusters []*Cluster
	// Process is what the process has once.
	Process Process
}

// Protocol is what a socket speaks to its clients.
type Protocol uint8

// The protocols of a socket.
const (
	// ProtocolHTTP is plain HTTP.
	ProtocolHTTP Protocol = iota + 1
	// ProtocolHTTPS is HTTP over TLS that ends here.
	ProtocolHTTPS
)

// String returns the protocol's name as Gateway API spells it.
func (p Protocol) String() string {
	switch p {
	case ProtocolHTTP:
		return "HTTP"
	case ProtocolHTTPS:
		return "HTTPS"
	}
	return "unknown"
}

// Socket is one listening TCP socket. Several listeners share it and are told
// apart by hostname.
type Socket struct {
	// Name identifies the socket over snapshots: the text form of Addr.
	Name string
	// Addr is what is bound. An unspecified address means every address of the
	// family; 0.0.0.0 and [::] are different sockets.
	Addr netip.AddrPort
	// Protocol is what all listeners of the socket speak.
	Protocol Protocol
	// Client bounds what its clients may do.
	Client Client
	// AccessLog says which of its requests are logged.
	AccessLog AccessLog
	// Listeners have distinct Hostnames and are sorted by Name.
	Listeners []*Listener
}

// Listener is one virtual listener of a socket. A request belongs to the
// listener with the most specific matching Hostname and is never answered by
// the routes of another one.
type Listener struct {
	// Name is "namespace/gateway/listener"; unique in the snapshot's socket.
	Name string
	// Hostname is "" (any host), "*.example.com" (one or more labels, not the
	// apex) or "www.example.com"; lower case, without port and trailing dot.
	Hostname string
	// TLS is set when, and only when, the socket speaks HTTPS.
	TLS *TLS
	// Routes are sorted by Name, which is unique within the listener.
	Routes []*Route
}

// TLS is what a listener presents. Without a certificate its handshakes are
// refused, so that a broken Secret never lets another listener answer.
type TLS struct {
	// Certificates are in the order of preference; the first one that suits the
	// client's hello is used.
	Certificates []*Certificate
}

// Certificate is a chain with its key.
type Certificate struct {
	// Name says where it came from, for logs: "namespace/secret".
	Name string
	// Chain is PEM, leaf first.
	Chain []byte
	// Key is PEM.
	Key Secret
}

// Route is what one route object contributes to one listener.
type Route struct {
	// Name is "namespace/name".
	Name string
	// Hostnames are what the route serves on this listener, already intersected
	// with the listener's hostname; never empty. "" is any host, else as in
	// [Listener.Hostname].
	Hostnames []string
	// Created is the object's age, for ties: the older route wins, then Name.
	Created time.Time
	// Rules are in the order of the object.
	Rules []*Rule
}

// Rule is a set of alternative matches with what to do when one holds.
type Rule struct {
	// Name is the optional name given in the route.
	Name string
	// Index is the rule's place in the route object, from 0.
	Index int
	// Matches are alternatives; never empty.
	Matches []*Match
	// Filters are sorted by Order, which is unique within the rule.
	Filters []*Filter
	// Backends share the requests by weight. A rule without a backend and
	// without a redirect answers 500.
	Backends []*Backend
	// Timeouts bound the rule's exchanges.
	Timeouts Timeouts
}

// Match holds when all of its conditions hold.
type Match struct {
	Path    PathMatch
	Method  string // "" is any; upper case as in the request line
	Headers []ValueMatch
	Query   []ValueMatch
}

// MatchKind says how a value is compared.
type MatchKind uint8

// The kinds of comparison. Regular expressions are RE2 and must match the whole
// value.
const (
	MatchExact MatchKind = iota + 1
	MatchPrefix
	MatchRegex
)

// String returns the kind's name.
func (k MatchKind) String() string {
	switch k {
	case MatchExact:
		return "Exact"
	case MatchPrefix:
		return "PathPrefix"
	case MatchRegex:
		return "RegularExpression"
	}
	return "unknown"
}

// PathMatch compares the normalised path. MatchPrefix compares whole segments;
// a trailing slash of its Value is ignored.
type PathMatch struct {
	Kind  MatchKind
	Value string
}

// ValueMatch compares a header field or a query parameter. Header names are
// compared without regard to case, and a field that is repeated is compared as
// its comma-joined value (RFC 9110, 5.3). Query names are compared exactly and
// the first value counts.
type ValueMatch struct {
	Name  string
	Kind  MatchKind // MatchExact or MatchRegex
	Value string
}

// Backend is one share of a rule's requests.
type Backend struct {
	// Cluster names a cluster of the snapshot. It is empty when the reference
	// is invalid: its share is answered 500.
	Cluster string
	// Invalid says why Cluster is empty.
	Invalid string
	// Weight is the share, 0 to 1,000,000.
	Weight uint32
	// Filters run for the requests that this backend gets, sorted by Order:
	// header changes only.
	Filters []*Filter
}

// Timeouts bound an exchange. A nil pointer means that the route says nothing;
// zero switches the timeout off.
type Timeouts struct {
	// Request runs from the request's head to the end of the response.
	Request *time.Duration
	// Backend bounds one try: from the try's start to the end of its response.
	Backend *time.Duration
}
