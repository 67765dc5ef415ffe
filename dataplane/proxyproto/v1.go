package proxyproto

import (
	"bytes"
	"net/netip"
	"strconv"
)

// max1 is the longest line, with its end (spec, 2.1).
const max1 = 107

// parse1 reads the line of version 1; p begins with "PROXY".
func parse1(p []byte) (Header, int, error) {
	end := bytes.IndexAny(p[:min(len(p), max1-1)], "\r\n")
	switch {
	case end < 0 && len(p) >= max1-1:
		return Header{}, 0, ErrTooLong // there is no room for CR and LF
	case end < 0 || p[end] == '\r' && end == len(p)-1:
		return Header{}, 0, nil
	case p[end] == '\n' || p[end+1] != '\n':
		return Header{}, 0, ErrMalformed // a bare CR or LF (spec, 2.1)
	}
	h, ok := line(p[len(sign1):end])
	if !ok {
		return Header{}, 0, ErrMalformed
	}
	return h, end + 2, nil
}

// line reads what follows "PROXY" in the line.
func line(p []byte) (Header, bool) {
	h := Header{Version: 1}
	const unknown = " UNKNOWN"
	if rest, ok := bytes.CutPrefix(p, []byte(unknown)); ok {
		return h, len(rest) == 0 || rest[0] == ' ' // whatever follows is not looked at
	}
	// "", the family, two addresses, two ports: exactly one blank between them.
	fields := bytes.SplitN(p, []byte(" "), 7)
	if len(fields) != 6 || len(fields[0]) > 0 {
		return h, false
	}
	var six bool
	switch string(fields[1]) {
	case "TCP4":
	case "TCP6":
		six = true
	default:
		return h, false
	}
	var ok [2]bool
	h.Source, ok[0] = address(fields[2], fields[4], six)
	h.Destination, ok[1] = address(fields[3], fields[5], six)
	return h, ok[0] && ok[1]
}

// address reads an address and its port.
func address(host, port []byte, six bool) (netip.AddrPort, bool) {
	// ParseAddr refuses leading zeros in IPv4 as the specification does.
	a, err := netip.ParseAddr(string(host))
	if err != nil || a.Is6() != six || a.Zone() != "" {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(string(port), 10, 16)
	if err != nil || port[0] == '0' && len(port) > 1 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), true
}
