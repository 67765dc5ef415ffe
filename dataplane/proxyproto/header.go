package proxyproto

import (
	"bytes"
	"net/netip"
)

// MaxBytes is the length of the longest header that is accepted. Version 1 has a
// limit of its own, 107 bytes; version 2 has room for 64 KiB of extensions, which
// nobody sends: the addresses and every registered extension take about 1 KB.
const MaxBytes = 4096

// Header is what a header says.
type Header struct {
	// Version is 1 or 2.
	Version uint8
	// Local says that the proxy has connected for itself, to see whether we are
	// well: the connection's own addresses are meant.
	Local bool
	// Source is the client that the proxy speaks for, Destination where that client
	// had connected to. Both are zero where the header does not say, or not as
	// addresses of TCP: the connection's own are what is known then.
	Source, Destination netip.AddrPort
}

// Fault is why a header is refused. Reason is a word for counting.
type Fault struct {
	Reason string
	text   string
}

// Error says what is wrong.
func (f *Fault) Error() string { return f.text }

// What is wrong with a header, or with what is there in its place.
var (
	ErrMissing   = &Fault{"missing", "the connection does not begin with a header of the PROXY protocol"}
	ErrMalformed = &Fault{"malformed", "the header of the PROXY protocol is malformed"}
	ErrTooLong   = &Fault{"too_long", "the header of the PROXY protocol is longer than is accepted"}
	ErrChecksum  = &Fault{"checksum", "the checksum of the PROXY protocol's header is wrong"}
)

const (
	sign1 = "PROXY"
	sign2 = "\r\n\r\n\x00\r\nQUIT\n"
)

// Parse reads the header at the beginning of p. It returns how long that is, or 0
// when more bytes are needed. Errors are a [*Fault] and final; they come as soon as
// the bytes so far can't become a header.
func Parse(p []byte) (h Header, n int, err error) {
	switch {
	case begins(p, sign1):
		if len(p) <= len(sign1) {
			return Header{}, 0, nil
		}
		return parse1(p)
	case begins(p, sign2):
		if len(p) <= len(sign2) {
			return Header{}, 0, nil
		}
		return parse2(p)
	}
	return Header{}, 0, ErrMissing
}

// begins tells whether p begins with sign, or is the beginning of it.
func begins(p []byte, sign string) bool {
	return bytes.HasPrefix(p, []byte(sign)) || len(p) < len(sign) && sign[:len(p)] == string(p)
}
