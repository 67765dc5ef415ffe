package proxyproto

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// Layout of version 2 (spec, 2.2).
const (
	fixed     = 16 // signature, version and command, family and protocol, length
	inet      = 4 + 4 + 2 + 2
	inet6     = 16 + 16 + 2 + 2
	unix      = 108 + 108
	vector    = 3 // type and length of an extension
	typeCRC32 = 3
	sizeCRC32 = 4
)

// parse2 reads the header of version 2; p begins with its signature, and goes on.
func parse2(p []byte) (Header, int, error) {
	h := Header{Version: 2}
	if p[12]>>4 != 2 {
		return Header{}, 0, ErrMalformed
	}
	switch p[12] & 0xf {
	case 0:
		h.Local = true
	case 1:
	default:
		return Header{}, 0, ErrMalformed
	}
	if len(p) < 14 {
		return Header{}, 0, nil
	}
	family, protocol := p[13]>>4, p[13]&0xf
	if !h.Local && (family > 3 || protocol > 2) { // LOCAL ignores the family
		return Header{}, 0, ErrMalformed
	}
	if len(p) < fixed {
		return Header{}, 0, nil
	}
	n := fixed + int(binary.BigEndian.Uint16(p[14:]))
	if n > MaxBytes {
		return Header{}, 0, ErrTooLong
	}
	extensions := fixed + addressBytes(family)
	// What LOCAL or no family brings along is to be discarded, whatever it is: it may
	// be extensions.
	discard := h.Local || family == 0
	if n < extensions && !discard {
		return Header{}, 0, ErrMalformed
	}
	if len(p) < n {
		return Header{}, 0, nil
	}
	p = p[:n]
	if fault := vectors(p, min(extensions, n)); fault != nil && (fault == ErrChecksum || !discard) {
		return Header{}, 0, fault
	}
	if !h.Local && protocol == 1 { // a stream: the other valid pairs say nothing of TCP
		h.Source, h.Destination = endpoints(p[fixed:], family)
	}
	return h, n, nil
}

// addressBytes returns how long the addresses of a family are.
func addressBytes(family byte) int {
	switch family {
	case 1:
		return inet
	case 2:
		return inet6
	case 3:
		return unix
	}
	return 0
}

// endpoints reads the addresses of a family, none where they are not IP's.
func endpoints(p []byte, family byte) (source, destination netip.AddrPort) {
	var size int
	switch family {
	case 1:
		size = 4
	case 2:
		size = 16
	default:
		return source, destination
	}
	ports := p[2*size:]
	return endpoint(p[:size], ports), endpoint(p[size:2*size], ports[2:])
}

func endpoint(ip, port []byte) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(port))
}

// vectors walks over the extensions of the header p, from at on, and checks what
// they say of it.
func vectors(p []byte, at int) *Fault {
	sum, found := 0, false
	for at < len(p) {
		if len(p)-at < vector {
			return ErrMalformed
		}
		value := at + vector
		next := value + int(binary.BigEndian.Uint16(p[at+1:]))
		if next > len(p) {
			return ErrMalformed
		}
		if p[at] == typeCRC32 {
			if next-value != sizeCRC32 || found {
				return ErrMalformed
			}
			sum, found = value, true
		}
		at = next
	}
	if found && checksum(p, sum) != binary.BigEndian.Uint32(p[sum:]) {
		return ErrChecksum
	}
	return nil
}

// checksum returns the CRC32C of the header with zeros in the place of the four
// bytes at: the checksum itself (spec, 2.2.3).
func checksum(p []byte, at int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	crc := crc32.Update(0, table, p[:at])
	crc = crc32.Update(crc, table, []byte{0, 0, 0, 0})
	return crc32.Update(crc, table, p[at+sizeCRC32:])
}
