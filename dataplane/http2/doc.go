// Package http2 is the codec of HTTP/2 (RFC 9113) towards clients: it turns the
// bytes that a client sends into events, and what is answered into bytes. It
// knows no sockets, timers or routes. What a request may look like beyond its
// framing is decided by package http1, so that both versions refuse the same
// things; message has what they fill.
package http2
