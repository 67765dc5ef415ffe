package dataplane

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/headgate/headgate/dataplane/message"
)

// Status codes of gRPC that the gateway answers with.
const (
	grpcUnknown          = 2
	grpcPermissionDenied = 7
	grpcUnimplemented    = 12
	grpcInternal         = 13
	grpcUnavailable      = 14
	grpcUnauthenticated  = 16
)

// grpcStatus is gRPC's status for one of HTTP's, by gRPC's own table
// (doc/http-grpc-status-mapping.md of its repository).
func grpcStatus(status int) int {
	switch status {
	case http.StatusBadRequest:
		return grpcInternal
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusForbidden:
		return grpcPermissionDenied
	case http.StatusNotFound:
		return grpcUnimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	return grpcUnknown
}

var grpcPrefix = []byte("application/grpc")

// isGRPC tells that a request is a gRPC call.
func isGRPC(r *message.Request) bool {
	t := r.Headers.Get("Content-Type")
	return len(t) >= len(grpcPrefix) && bytes.EqualFold(t[:len(grpcPrefix)], grpcPrefix)
}

// failGRPC answers a gRPC call with a status of gRPC's, in a head that ends the
// stream ("Trailers-Only"). It knows HTTP/2 only: over HTTP/1 there is no gRPC,
// and who sends it anyway gets HTTP's status.
func (ex *exchange) failGRPC(status int, text string) {
	w := ex.worker
	w.metrics.LocalReply(ex.replyReason(status))
	r := &ex.local
	r.Reset()
	r.Status, r.Major, r.Minor = http.StatusOK, 1, 1
	r.ContentLength, r.Bodyless = message.Unknown, true
	r.Headers.Add("Content-Type", "application/grpc")
	r.Headers.Add("Grpc-Status", strconv.Itoa(grpcStatus(status)))
	r.Headers.Add("Grpc-Message", grpcMessage(text))
	if ex.shed > 0 { // gRFC A6: when a client may try again
		r.Headers.Add("Grpc-Retry-Pushback-Ms", strconv.FormatInt(ex.shed.Milliseconds(), 10))
	}
	ex.answered, ex.status = true, r.Status
	ex.side.writeHead(r, &ex.request)
	ex.finish()
}

// grpcMessage encodes a text for Grpc-Message: printable ASCII but for the percent
// sign stays, other bytes are escaped.
func grpcMessage(s string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if b := s[i]; b >= ' ' && b <= '~' && b != '%' {
			out = append(out, b)
		} else {
			out = append(out, '%', hex[b>>4], hex[b&15])
		}
	}
	return string(out)
}
