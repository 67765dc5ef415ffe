package proxyproto

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// binary2 makes a header of version 2 from its 13th and 14th byte and what follows
// the length.
func binary2(command, family byte, block ...string) string {
	b := strings.Join(block, "")
	return sign2 + string([]byte{command, family, byte(len(b) >> 8), byte(len(b))}) + b
}

// extension makes a vector.
func extension(kind byte, value string) string {
	return string([]byte{kind, byte(len(value) >> 8), byte(len(value))}) + value
}

// summed is binary2 with a right checksum between two lists of extensions.
func summed(command, family byte, before, after string) string {
	s := []byte(binary2(command, family, before, extension(3, "\x00\x00\x00\x00"), after))
	at := len(s) - len(after) - 4
	binary.BigEndian.PutUint32(s[at:], crc32.Checksum(s, crc32.MakeTable(crc32.Castagnoli)))
	return string(s)
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const (
	four = "\xc0\xa8\x00\x01\xc0\xa8\x00\x0b\xdc\x04\x01\xbb" // 192.168.0.1:56324, 192.168.0.11:443
	six  = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03\xe8\x01\xbb" // [2001:db8::1]:1000, [2001:db8::2]:443
	mapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\xa8\x00\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\xa8\x00\x0b\xdc\x04\x01\xbb"
)

type vectorCase struct {
	name, in string
	want     Header
	fault    *Fault
}

func pair(version uint8, source, destination string) Header {
	return Header{Version: version, Source: netip.MustParseAddrPort(source), Destination: netip.MustParseAddrPort(destination)}
}

// vectorCases are whole headers and what is no header. Those of HAProxy were sent
// by its version 2.6.12, with send-proxy and send-proxy-v2.
func vectorCases() []vectorCase {
	one, two := Header{Version: 1}, Header{Version: 2}
	local := Header{Version: 2, Local: true}
	known := pair(2, "192.168.0.1:56324", "192.168.0.11:443")
	names := "\x00" + strings.Repeat("/run/a.sock", 9)
	paths := names + strings.Repeat("\x00", 108-len(names)) + strings.Repeat("\x00", 108)
	long := strings.Repeat("x", MaxBytes-fixed-inet-vector)
	return []vectorCase{
		// Version 1.
		{"the specification's example", "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", pair(1, "192.168.0.1:56324", "192.168.0.11:443"), nil},
		{"the longest of TCP4", "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", pair(1, "255.255.255.255:65535", "255.255.255.255:65535"), nil},
		{"the longest of TCP6", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:FFFF 65535 65535\r\n",
			pair(1, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"), nil},
		{"UNKNOWN, short", "PROXY UNKNOWN\r\n", one, nil},
		{"UNKNOWN, the worst case", "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", one, nil},
		{"UNKNOWN and anything", "PROXY UNKNOWN  \x00\xff what?\r\n", one, nil},
		{"ports of 0", "PROXY TCP4 1.2.3.4 5.6.7.8 0 0\r\n", pair(1, "1.2.3.4:0", "5.6.7.8:0"), nil},
		{"short addresses of TCP6", "PROXY TCP6 2001:DB8::1 :: 1 2\r\n", pair(1, "[2001:db8::1]:1", "[::]:2"), nil},
		{"IPv4 in IPv6", "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:c000:202 1 2\r\n", pair(1, "192.0.2.1:1", "192.0.2.2:2"), nil},
		{"HAProxy, TCP4", unhex("50524f58592054435034203132372e302e302e31203132372e302e302e312034323135362032313230310d0a"), pair(1, "127.0.0.1:42156", "127.0.0.1:21201"), nil},
		{"HAProxy, TCP6", unhex("50524f58592054435036203a3a31203a3a312035303334322032313230350d0a"), pair(1, "[::1]:50342", "[::1]:21205"), nil},

		{"a bare LF", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n", Header{}, ErrMalformed},
		{"a bare CR", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\r\n", Header{}, ErrMalformed},
		{"a bare LF in UNKNOWN", "PROXY UNKNOWN a\nb\r\n", Header{}, ErrMalformed},
		{"no family", "PROXY \r\n", Header{}, ErrMalformed},
		{"nothing at all", "PROXY\r\n", Header{}, ErrMalformed},
		{"no blank before the family", "PROXYTCP4 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"no blank after UNKNOWN", "PROXY UNKNOWNS\r\n", Header{}, ErrMalformed},
		{"a family of later", "PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"a family in small letters", "PROXY tcp4 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"UDP", "PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"two blanks", "PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"a blank at the end", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n", Header{}, ErrMalformed},
		{"a tab", "PROXY TCP4 1.2.3.4\t5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"one field more", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n", Header{}, ErrMalformed},
		{"one field less", "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", Header{}, ErrMalformed},
		{"IPv6 as TCP4", "PROXY TCP4 ::1 ::1 1 2\r\n", Header{}, ErrMalformed},
		{"IPv4 as TCP6", "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"families that differ", "PROXY TCP6 ::1 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"a leading zero in an address", "PROXY TCP4 1.02.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"a number above 255", "PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"three numbers", "PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n", Header{}, ErrMalformed},
		{"a zone", "PROXY TCP6 fe80::1%1 fe80::2 1 2\r\n", Header{}, ErrMalformed},
		{"seven groups", "PROXY TCP6 1:2:3:4:5:6:7 :: 1 2\r\n", Header{}, ErrMalformed},
		{"two double colons", "PROXY TCP6 1::2::3 :: 1 2\r\n", Header{}, ErrMalformed},
		{"a leading zero in a port", "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n", Header{}, ErrMalformed},
		{"a port above 65535", "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n", Header{}, ErrMalformed},
		{"a negative port", "PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n", Header{}, ErrMalformed},
		{"a port with a sign", "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n", Header{}, ErrMalformed},
		{"no port", "PROXY TCP4 1.2.3.4 5.6.7.8  2\r\n", Header{}, ErrMalformed},
		{"one byte too long", "PROXY UNKNOWN " + strings.Repeat("x", max1-2-14+1) + "\r\n", Header{}, ErrTooLong},
		{"a line without an end", "PROXY UNKNOWN " + strings.Repeat("x", 500), Header{}, ErrTooLong},

		// Version 2.
		{"TCP over IPv4", binary2(0x21, 0x11, four), known, nil},
		{"TCP over IPv6", binary2(0x21, 0x21, six), pair(2, "[2001:db8::1]:1000", "[2001:db8::2]:443"), nil},
		{"IPv4 in IPv6, version 2", binary2(0x21, 0x21, mapped), known, nil},
		{"UDP over IPv4", binary2(0x21, 0x12, four), two, nil},
		{"UDP over IPv6", binary2(0x21, 0x22, six), two, nil},
		{"a Unix stream", binary2(0x21, 0x31, paths), two, nil},
		{"Unix datagrams", binary2(0x21, 0x32, paths), two, nil},
		{"no family, version 2", binary2(0x21, 0x00), two, nil},
		{"no family, and something", binary2(0x21, 0x00, "what?"), two, nil},
		{"no family and extensions", binary2(0x21, 0x00, extension(2, "a.example")), two, nil},
		{"IPv4 without a protocol", binary2(0x21, 0x10, four), two, nil},
		{"LOCAL", binary2(0x20, 0x00), local, nil},
		{"LOCAL with addresses", binary2(0x20, 0x11, four), local, nil},
		{"LOCAL with too few of them", binary2(0x20, 0x11, "abc"), local, nil},
		{"LOCAL with a family of later", binary2(0x20, 0xff, "abc"), local, nil},
		{"LOCAL with extensions", binary2(0x20, 0x00, extension(4, ""), extension(0xe0, "x")), local, nil},
		{"LOCAL with a checksum", summed(0x20, 0x00, "", ""), local, nil},
		{"extensions", binary2(0x21, 0x11, four, extension(2, "a.example"), extension(4, ""), extension(0xea, strings.Repeat("x", 300))), known, nil},
		{"a checksum", summed(0x21, 0x11, four, ""), known, nil},
		{"a checksum between others", summed(0x21, 0x11, four+extension(2, "a.example"), extension(4, "\x00")), known, nil},
		{"the longest", binary2(0x21, 0x11, four, extension(4, long)), known, nil},
		{"HAProxy", unhex("0d0a0d0a000d0a515549540a2111000c7f0000017f00000186d052d2"), pair(2, "127.0.0.1:34512", "127.0.0.1:21202"), nil},
		{"HAProxy, a checksum", unhex("0d0a0d0a000d0a515549540a211100137f0000017f000001ab4c52d30300049cd71349"), pair(2, "127.0.0.1:43852", "127.0.0.1:21203"), nil},
		{"HAProxy, IPv6", unhex("0d0a0d0a000d0a515549540a2121002b0000000000000000000000000000000100000000000000000000000000000001a07252d6030004cebcfad6"),
			pair(2, "[::1]:41074", "[::1]:21206"), nil},
		{"HAProxy, all about TLS", unhex("0d0a0d0a000d0a515549540a211100877f0000017f000001996652d4030004ab212646010008687474702f312e3102000f7777772e6578616d706c652e636f6d" +
			"05000d37463030303030313a393936362000440100000000210007544c5376312e33250005454332353624001165636473612d776974682d534841323536230016544c535f4145535f3235365f47434d5f534841333834"),
			pair(2, "127.0.0.1:39270", "127.0.0.1:21204"), nil},

		{"version 1 in binary", binary2(0x11, 0x11, four), Header{}, ErrMalformed},
		{"version 3", binary2(0x31, 0x11, four), Header{}, ErrMalformed},
		{"a command of later", binary2(0x22, 0x11, four), Header{}, ErrMalformed},
		{"a family of later, version 2", binary2(0x21, 0x41, four), Header{}, ErrMalformed},
		{"a protocol of later", binary2(0x21, 0x13, four), Header{}, ErrMalformed},
		{"too few addresses", binary2(0x21, 0x11, four[:11]), Header{}, ErrMalformed},
		{"too few addresses of IPv6", binary2(0x21, 0x21, four), Header{}, ErrMalformed},
		{"too few addresses of Unix", binary2(0x21, 0x31, paths[:200]), Header{}, ErrMalformed},
		{"half an extension", binary2(0x21, 0x11, four, "\x02\x00"), Header{}, ErrMalformed},
		{"an extension that is longer than the header", binary2(0x21, 0x11, four, "\x02\x00\x05abcd"), Header{}, ErrMalformed},
		{"a wrong checksum", binary2(0x21, 0x11, four, extension(3, "\x00\x00\x00\x00")), Header{}, ErrChecksum},
		{"a wrong checksum of LOCAL", binary2(0x20, 0x00, extension(3, "\x00\x00\x00\x00")), Header{}, ErrChecksum},
		{"a checksum of another size", binary2(0x21, 0x11, four, extension(3, "\x00")), Header{}, ErrMalformed},
		{"two checksums", binary2(0x21, 0x11, four, extension(3, "abcd"), extension(3, "abcd")), Header{}, ErrMalformed},
		{"one byte too long, version 2", binary2(0x21, 0x11, four, extension(4, long+"x")), Header{}, ErrTooLong},
		{"64 KiB", binary2(0x20, 0x00, strings.Repeat("x", 65535)), Header{}, ErrTooLong},

		// What else comes to a port.
		{"HTTP", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", Header{}, ErrMissing},
		{"HTTP that begins alike", "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", Header{}, ErrMissing},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Header{}, ErrMissing},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Header{}, ErrMissing},
		{"empty lines before HTTP", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", Header{}, ErrMissing},
		{"another case", "Proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n", Header{}, ErrMissing},
	}
}

func TestParse(t *testing.T) {
	for _, c := range vectorCases() {
		t.Run(c.name, func(t *testing.T) {
			const rest = "GET / HTTP/1.1\r\n" // what follows is not touched
			in := []byte(c.in + rest)
			h, n, err := Parse(in)
			check(t, c, h, n, err)
			if string(in) != c.in+rest {
				t.Error("the input was changed")
			}
		})
	}
}

func check(t *testing.T, c vectorCase, h Header, n int, err error) {
	t.Helper()
	var f *Fault
	if errors.As(err, &f); f != c.fault || err != nil && f == nil {
		t.Fatalf("%v, not %v", err, c.fault)
	}
	if want := len(c.in); err == nil && n != want || err != nil && n != 0 {
		t.Errorf("%d bytes of %d", n, want)
	}
	if d := cmp.Diff(c.want, h, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Error(d)
	}
}

// A header that comes in pieces is waited for; what can't become one is refused
// without waiting for its end.
func TestParseInPieces(t *testing.T) {
	for _, c := range vectorCases() {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.in {
				h, n, err := Parse([]byte(c.in[:i]))
				if err != nil && c.fault != nil {
					check(t, c, h, n, err)
					return
				}
				if err != nil || n != 0 || h != (Header{}) {
					t.Fatalf("after %d bytes: %+v, %d, %v", i, h, n, err)
				}
			}
			h, n, err := Parse([]byte(c.in))
			check(t, c, h, n, err)
		})
	}
}

// Strangers are known by their first bytes, and lengths before what they count.
func TestFaultsComeEarly(t *testing.T) {
	for in, want := range map[string]*Fault{
		"G": ErrMissing, "\x16": ErrMissing, "PO": ErrMissing, "PRI": ErrMissing, "\r\n\r\nG": ErrMissing,
		sign2 + "\x11":                             ErrMalformed,
		sign2 + "\x22":                             ErrMalformed,
		sign2 + "\x21\x51":                         ErrMalformed,
		sign2 + "\x21\x11\x00\x0b":                 ErrMalformed,
		sign2 + "\x21\x11\xff\xff":                 ErrTooLong,
		"PROXY UNKNOWN " + strings.Repeat("x", 92): ErrTooLong,
	} {
		var f *Fault
		if _, _, err := Parse([]byte(in)); !errors.As(err, &f) || f != want {
			t.Errorf("%q: %v, not %v", in, err, want)
		}
	}
	for _, in := range []string{"", "P", "PROXY", "PROXY ", "PROXY what is this", "\r", sign2, sign2 + "\x21", "PROXY UNKNOWN\r", "PROXY UNKNOWN " + strings.Repeat("x", 91) + "\r"} {
		if _, n, err := Parse([]byte(in)); n != 0 || err != nil {
			t.Errorf("%q: %d, %v", in, n, err)
		}
	}
}

// Any change of one bit of a header with a checksum is noticed.
func TestChecksumCoversAll(t *testing.T) {
	whole := []byte(summed(0x21, 0x11, four+extension(2, "a.example"), extension(4, "")))
	for i := range whole {
		for bit := range 8 {
			whole[i] ^= 1 << bit
			// Without its type the checksum is an extension like any other, and without a
			// family there is no telling where extensions begin.
			if at := fixed + inet + vector + len("a.example"); i != at && whole[13] != 0x01 {
				if h, n, err := Parse(whole); err == nil && (n != 0 || i < len(sign2)) {
					t.Errorf("bit %d of byte %d changed: %+v", bit, i, h)
				}
			}
			whole[i] ^= 1 << bit
		}
	}
}
