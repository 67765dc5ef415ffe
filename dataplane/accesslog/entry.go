package accesslog

import (
	"net/netip"
	"time"
)

// Entry is what is logged of one request. Its slices are read during Write only.
// Fields that are empty are left out of the line, but for those marked "always".
// Long texts are cut: see [Writer.Write].
type Entry struct {
	RequestID []byte
	Client    netip.AddrPort // the zero value is left out; port 0 too
	Method    []byte         // always
	Host      []byte         // always
	Path      []byte         // always
	// Query is logged as it is given. Queries carry tokens: an exchange that is
	// not told to log them leaves it empty.
	Query     []byte
	Protocol  string        // always; "HTTP/1.1"
	Status    int           // always; 0 when the exchange ended before one was sent
	BytesIn   int64         // always; of the request's body
	BytesOut  int64         // always; of the response's body
	Duration  time.Duration // always; first byte of the request to the last of the response
	UserAgent []byte
	Referer   []byte

	Listener string // "namespace/gateway/listener"
	Route    string // "namespace/name"
	Cluster  string // "namespace/service:port"
	Upstream string // the endpoint's address
	// UpstreamDuration is from the written request to the response's head.
	UpstreamDuration time.Duration

	// Origin and Reason are of the error of a request that failed.
	Origin string
	Reason string

	TLS string // the version, "TLS 1.3"
	SNI string
}
