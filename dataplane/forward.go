package dataplane

import "strconv"

// Fields that tell a backend about the client.
const (
	headerForwardedFor   = "X-Forwarded-For"
	headerForwardedProto = "X-Forwarded-Proto"
	headerForwardedHost  = "X-Forwarded-Host"
	headerForwardedPort  = "X-Forwarded-Port"
	headerRealIP         = "X-Real-Ip"
	headerRequestID      = "X-Request-Id"
)

var (
	nameForwardedFor   = []byte(headerForwardedFor)
	nameForwardedProto = []byte(headerForwardedProto)
	nameForwardedHost  = []byte(headerForwardedHost)
	nameForwardedPort  = []byte(headerForwardedPort)
	nameRealIP         = []byte(headerRealIP)
	nameRequestID      = []byte(headerRequestID)
	protoHTTP          = []byte("http")
	protoHTTPS         = []byte("https")
)

// forwarded is what a client may say about another client.
type forwarded uint8

const (
	notForwarded     forwarded = iota
	forwardedStd               // Forwarded (RFC 7239)
	forwardedFor               // X-Forwarded-For
	forwardedProto             // X-Forwarded-Proto
	forwardedHost              // X-Forwarded-Host
	forwardedPort              // X-Forwarded-Port
	forwardedRealIP            // X-Real-Ip
	forwardedOther             // any other X-Forwarded-..., -Prefix for one
	forwardedAlias             // one of them spelled with an underscore
	forwardedRequest           // X-Request-Id
)

// classify tells which of them a name is, however it is spelled: an underscore
// reaches many backends as a dash.
func classify(name []byte) forwarded {
	if len(name) < 9 || len(name) > 64 || name[0]|0x20 != 'x' && name[0]|0x20 != 'f' {
		return notForwarded
	}
	var buf [64]byte
	alias := false
	for i, b := range name {
		switch {
		case b == '_':
			alias = true
			b = '-'
		case 'A' <= b && b <= 'Z':
			b |= 0x20
		}
		buf[i] = b
	}
	kind := notForwarded
	switch s := string(buf[:len(name)]); {
	case s == "forwarded":
		kind = forwardedStd
	case s == "x-forwarded-for":
		kind = forwardedFor
	case s == "x-forwarded-proto":
		kind = forwardedProto
	case s == "x-forwarded-host":
		kind = forwardedHost
	case s == "x-forwarded-port":
		kind = forwardedPort
	case s == "x-real-ip":
		kind = forwardedRealIP
	case s == "x-request-id":
		kind = forwardedRequest
	case s == "x-forwarded", len(s) > 12 && s[:12] == "x-forwarded-":
		kind = forwardedOther
	}
	if alias && kind != notForwarded {
		return forwardedAlias
	}
	return kind
}

// forward tells the backend who the client is. What an untrusted peer said
// about that is dropped; a trusted one's word is kept and its own address
// appended.
func (ex *exchange) forward() {
	c, h := ex.client, &ex.request.Headers
	var seen [forwardedRequest + 1]bool
	trusted := c.trusted
	h.DeleteFunc(func(name []byte) bool {
		kind := classify(name)
		switch {
		case kind == notForwarded:
			return false
		case kind == forwardedAlias:
			return true
		case kind == forwardedRequest || trusted:
			seen[kind] = true
			return false
		}
		return true
	})
	w := ex.worker
	w.scratch = c.conn.RemoteAddr().Addr().Unmap().AppendTo(w.scratch[:0])
	peer := h.Store(w.scratch)
	if seen[forwardedFor] {
		i := h.Index(headerForwardedFor, 0)
		list, _ := h.Combined(headerForwardedFor)
		joined := h.Extend(h.Extend(h.Store(list), []byte(", ")), peer)
		h.SetBytes(string(h.Fields()[i].Name), joined)
	} else {
		h.Append(nameForwardedFor, peer)
	}
	if !seen[forwardedRealIP] {
		h.Append(nameRealIP, peer)
	}
	if !seen[forwardedProto] {
		proto := protoHTTP
		if ex.request.Secure {
			proto = protoHTTPS
		}
		h.Append(nameForwardedProto, proto)
	}
	if !seen[forwardedHost] && len(ex.request.Host) > 0 {
		h.Append(nameForwardedHost, ex.request.Host)
	}
	if !seen[forwardedPort] {
		port := c.socket.port
		if c.port != 0 {
			w.scratch = strconv.AppendUint(w.scratch[:0], uint64(c.port), 10)
			port = h.Store(w.scratch)
		}
		h.Append(nameForwardedPort, port)
	}
	ex.identify(seen[forwardedRequest])
}

// maxRequestID is the longest request id that is taken from a client.
const maxRequestID = 128

// identify gives the request an id. A sound one that the client sent is kept,
// so that a trace that began elsewhere goes on.
func (ex *exchange) identify(sent bool) {
	h := &ex.request.Headers
	if sent {
		if id := h.Get(headerRequestID); len(id) > 0 && len(id) <= maxRequestID && printable(id) {
			ex.requestID = id
			return
		}
		h.Del(headerRequestID)
	}
	w := ex.worker
	w.scratch = w.requestID(w.scratch[:0])
	ex.requestID = h.Store(w.scratch)
	h.Append(nameRequestID, ex.requestID)
}

// printable tells that b has only visible ASCII.
func printable(b []byte) bool {
	for _, x := range b {
		if x <= ' ' || x > '~' {
			return false
		}
	}
	return true
}
