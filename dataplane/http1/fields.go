package http1

import (
	"bytes"

	"github.com/headgate/headgate/dataplane/message"
)

// special is a field that the codec interprets and that never reaches a
// message's Headers.
type special uint8

const (
	ordinary special = iota
	connectionField
	contentLengthField
	expectField
	hostField
	keepAliveField
	proxyConnectionField
	teField
	transferEncodingField
	upgradeField
)

// specialOf classifies a field name.
func specialOf(name []byte) special {
	switch len(name) {
	case 2:
		if message.EqualFold(name, "te") {
			return teField
		}
	case 4:
		if message.EqualFold(name, "host") {
			return hostField
		}
	case 6:
		if message.EqualFold(name, "expect") {
			return expectField
		}
	case 7:
		if message.EqualFold(name, "upgrade") {
			return upgradeField
		}
	case 10:
		if message.EqualFold(name, "connection") {
			return connectionField
		}
		if message.EqualFold(name, "keep-alive") {
			return keepAliveField
		}
	case 14:
		if message.EqualFold(name, "content-length") {
			return contentLengthField
		}
	case 16:
		if message.EqualFold(name, "proxy-connection") {
			return proxyConnectionField
		}
	case 17:
		if message.EqualFold(name, "transfer-encoding") {
			return transferEncodingField
		}
	}
	return ordinary
}

// framing is what the fields of one head say about its connection and its body.
// The first fault is kept, and told when the syntax of the whole head is known
// to be right.
type framing struct {
	fault *fault

	close, keepAlive bool // options of Connection
	switches         bool // Connection lists "upgrade"
	nominates        bool // Connection lists other fields
	connection       [maxConnectionLines][]byte
	connections      int
	options          int

	lengths int   // number of Content-Length values
	length  int64 // the first of them

	transfer bool // there is a Transfer-Encoding
	chunked  bool // its last coding so far is chunked
	identity bool // its only coding so far is identity
	coded    bool // a coding besides chunked and identity
	upgrade  []byte
}

func (m *framing) fail(f *fault) {
	if m.fault == nil {
		m.fault = f
	}
}

// addConnection takes a Connection field (RFC 9110, 7.6.1).
func (m *framing) addConnection(value []byte) {
	if m.connections == maxConnectionLines {
		m.fail(faultConnection)
		return
	}
	m.connection[m.connections] = value
	m.connections++
	for more := true; more; {
		var option []byte
		option, value, more = nextElement(value)
		if m.options++; m.options > maxConnectionOptions {
			m.fail(faultConnection)
			return
		}
		switch {
		case len(option) == 0:
		case message.EqualFold(option, "close"):
			m.close = true
		case message.EqualFold(option, "keep-alive"):
			m.keepAlive = true
		case message.EqualFold(option, "upgrade"):
			m.switches = true
		default:
			m.nominates = true
		}
	}
}

// removeNominated removes the fields that Connection lists. The fields that
// frame or route the message are not in h, so they can't be removed.
func (m *framing) removeNominated(h *message.Headers) {
	if !m.nominates {
		return
	}
	for _, value := range m.connection[:m.connections] {
		for more := true; more; {
			var option []byte
			option, value, more = nextElement(value)
			if len(option) > 0 {
				h.DeleteFunc(func(name []byte) bool { return equalFold(name, option) })
			}
		}
	}
}

// equalFold compares a token with b without regard to ASCII case.
func equalFold(token, b []byte) bool {
	if len(token) != len(b) {
		return false
	}
	for i, c := range token {
		if c != b[i] && (c|0x20 != b[i]|0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// addLength takes a Content-Length. A request has exactly one value; a response
// may repeat it (RFC 9112, 6.3).
func (m *framing) addLength(value []byte, repeats bool) {
	for more := true; more; {
		var digits []byte
		digits, value, more = value, nil, false
		if repeats {
			digits, value, more = nextElement(digits)
		}
		n, f := decimal(digits)
		switch {
		case f != nil:
			m.fail(f)
			return
		case m.lengths > 0 && n != m.length:
			m.fail(faultLengthConflict)
		case m.lengths > 0 && !repeats:
			m.fail(faultLengthDuplicate)
		}
		m.length = n
		m.lengths++
	}
}

// decimal parses a Content-Length: digits and nothing else.
func decimal(digits []byte) (n int64, f *fault) {
	if len(digits) == 0 {
		return 0, faultLength
	}
	for _, c := range digits {
		d := c - '0'
		switch {
		case d > 9:
			return 0, faultLength
		case n > (1<<63-1-int64(d))/10:
			f = faultLengthLarge // unless what follows is no digit
		default:
			n = n*10 + int64(d)
		}
	}
	return n, f
}

// addTransfer takes a Transfer-Encoding (RFC 9112, 6.1).
func (m *framing) addTransfer(value []byte) {
	m.transfer = true
	for more := true; more; {
		var coding []byte
		coding, value, more = nextElement(value)
		switch {
		case message.EqualFold(coding, "chunked"):
			if m.chunked {
				m.fail(faultTransfer) // applied twice
			}
			m.coded = m.coded || m.identity
			m.identity = false
			m.chunked = true
		case m.chunked:
			// Something was applied to the chunks: the end can't be found.
			m.fail(faultTransferFinal)
		case message.EqualFold(coding, "identity"):
			m.coded = m.coded || m.identity
			m.identity = true
		case !validCoding(coding):
			m.fail(faultTransfer)
		default:
			m.coded = true
			m.identity = false
		}
	}
}

// validCoding tells whether b starts like a transfer coding (RFC 9110, 10.1.4):
// a token and perhaps parameters, which are not looked at.
func validCoding(b []byte) bool {
	if i := bytes.IndexByte(b, ';'); i >= 0 {
		b = trimSpace(b[:i])
	}
	return allToken(b)
}

// addUpgrade takes an Upgrade; several are one list.
func (m *framing) addUpgrade(value []byte) {
	if m.upgrade == nil {
		m.upgrade = value
		return
	}
	m.upgrade = append(append(m.upgrade[:len(m.upgrade):len(m.upgrade)], ", "...), value...)
}

// protocol returns the protocol to switch to, or nil: Connection must list
// "upgrade". A switch to another version of HTTP or to TLS is nothing that a
// tunnel may hide (a request inside it would pass by the routes), so such an
// Upgrade is ignored, as RFC 9110, 7.8 allows.
func (m *framing) protocol() []byte {
	if !m.switches || len(m.upgrade) == 0 {
		return nil
	}
	list := m.upgrade
	for more := true; more; {
		var name []byte
		name, list, more = nextElement(list)
		if i := bytes.IndexByte(name, '/'); i >= 0 {
			name = name[:i]
		}
		if !allToken(name) || message.EqualFold(name, "h2c") || message.EqualFold(name, "h2") ||
			message.EqualFold(name, "http") || message.EqualFold(name, "tls") {
			return nil
		}
	}
	return m.upgrade
}

// trailersAccepted tells whether a TE field lists "trailers" (RFC 9110, 10.1.4).
func trailersAccepted(value []byte) bool {
	for more := true; more; {
		var coding []byte
		coding, value, more = nextElement(value)
		if i := bytes.IndexByte(coding, ';'); i >= 0 {
			coding = trimSpace(coding[:i])
		}
		if message.EqualFold(coding, "trailers") {
			return true
		}
	}
	return false
}

// continueExpected tells whether an Expect field is nothing but 100-continue
// (RFC 9110, 10.1.1).
func continueExpected(value []byte) bool {
	for more := true; more; {
		var expectation []byte
		expectation, value, more = nextElement(value)
		if !message.EqualFold(expectation, "100-continue") {
			return false
		}
	}
	return true
}
