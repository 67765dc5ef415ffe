package http1

import "github.com/headgate/headgate/dataplane/message"

// The functions below check the parts of a request that do not depend on the
// version of HTTP (RFC 9110), for a codec that reads them in another way. An
// error is a *[message.RequestError] of the client, the same one that a
// [RequestParser] returns for the same fault.

// CheckMethod checks a method. CONNECT is refused.
func CheckMethod(method []byte) error {
	switch {
	case !allToken(method):
		return faultMethod.ofClient()
	case len(method) > maxMethod:
		return faultMethodLong.ofClient()
	case string(method) == "CONNECT":
		return faultConnect.ofClient()
	}
	return nil
}

// ParseTarget takes a request target in the origin or the asterisk form apart.
func ParseTarget(method, target []byte, l *Limits) (path, query []byte, hasQuery bool, err error) {
	if len(target) > l.requestLine() {
		return nil, nil, false, faultRequestLineLong.ofClient()
	}
	if len(target) == 0 || target[0] != '/' && string(target) != "*" {
		return nil, nil, false, faultTarget.ofClient()
	}
	r := requestLine{method: method}
	if f := r.parseTarget(target); f != nil {
		return nil, nil, false, f.ofClient()
	}
	return r.path, r.query, r.hasQuery, nil
}

// CheckScheme checks the scheme of a request target.
func CheckScheme(scheme []byte) error {
	if !message.EqualFold(scheme, "http") && !message.EqualFold(scheme, "https") {
		return faultScheme.ofClient()
	}
	return nil
}

// CheckAuthority checks a host that may have a port, and that must be there.
func CheckAuthority(authority []byte) error {
	switch {
	case len(authority) == 0:
		return faultHostMissing.ofClient()
	case !validAuthority(authority):
		return faultHost.ofClient()
	}
	return nil
}

// CheckExpect checks an Expect field.
func CheckExpect(value []byte) error {
	if !continueExpected(value) {
		return faultExpect.ofClient()
	}
	return nil
}

// ParseLength parses the value of a request's Content-Length.
func ParseLength(value []byte) (int64, error) {
	n, f := decimal(value)
	if f != nil {
		return 0, f.ofClient()
	}
	return n, nil
}

// ErrTooLarge returns the fault of a head that is larger than its limits allow.
func ErrTooLarge() error { return faultHeadersLarge.ofClient() }

// ErrTooMany returns the fault of a head that has more fields than its limits
// allow.
func ErrTooMany() error { return faultHeadersMany.ofClient() }

// IsToken tells whether b is a token (RFC 9110, 5.6.2).
func IsToken(b []byte) bool { return allToken(b) }

// IsTokenByte tells whether a token may have c.
func IsTokenByte(c byte) bool { return classes[c]&isToken != 0 }

// IsFieldValue tells whether b has no control character but HTAB.
func IsFieldValue(b []byte) bool { return clean(b) }

// TrailerAllowed tells whether a field may stand in a trailer section. Those
// that may not are dropped.
func TrailerAllowed(name []byte) bool { return trailerAllowed(name) }

// IsConnectionField tells whether a field belongs to a connection or to the
// framing, so that it never stands in the headers of a message.
func IsConnectionField(name []byte) bool { return specialOf(name) != ordinary }

// The limits that hold for every version of HTTP.

// MaxHeaderBytes returns the limit of all field lines of a head.
func (l *Limits) MaxHeaderBytes() int { return l.headerBytes() }

// MaxHeaderCount returns the limit of the number of fields of a head.
func (l *Limits) MaxHeaderCount() int { return l.headerCount() }

// MaxTrailerBytes returns the limit of all field lines of a trailer section.
func (l *Limits) MaxTrailerBytes() int { return l.trailerBytes() }

// MaxTrailerCount returns the limit of the number of trailers.
func (l *Limits) MaxTrailerCount() int { return l.trailerCount() }
