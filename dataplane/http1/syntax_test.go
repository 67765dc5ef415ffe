package http1

import (
	"bytes"
	"testing"
)

// TestControlAt compares with the plain loop: every byte at every place of
// strings up to 20 bytes, with what else may be there.
func TestControlAt(t *testing.T) {
	plain := func(b []byte, i int) int {
		for i < len(b) && (b[i] >= ' ' && b[i] != 0x7f || b[i] == '\t') {
			i++
		}
		return i
	}
	for n := range 21 {
		for _, fill := range []string{"a", "\t", "\x80", "\xff", " ", "\x1f", "a\t", "\x80\x01"} {
			b := bytes.Repeat([]byte(fill), n)[:n]
			for at := range n {
				old := b[at]
				for c := range 256 {
					b[at] = byte(c)
					for start := range n + 1 {
						if got, want := controlAt(b, start), plain(b, start); got != want {
							t.Fatalf("%q from %d: got %d, want %d", b, start, got, want)
						}
					}
				}
				b[at] = old
			}
		}
	}
}

func TestClasses(t *testing.T) {
	for c := range 256 {
		alnum := bytes.IndexByte([]byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), byte(c)) >= 0
		token := alnum || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0
		target := c > 0x20 && c != 0x7f && c != '?' && c != '#'
		name := alnum || bytes.IndexByte([]byte("-._~!$&'()*+,;="), byte(c)) >= 0
		hex := bytes.IndexByte([]byte("0123456789abcdefABCDEF"), byte(c)) >= 0
		for bit, want := range map[uint8]bool{isToken: token, isTarget: target, isRegName: name, isHex: hex} {
			if got := classes[c]&bit != 0; got != want {
				t.Errorf("byte %#x: class %d is %v", c, bit, got)
			}
		}
	}
}

func TestSpecialOf(t *testing.T) {
	names := map[string]special{
		"TE": teField, "host": hostField, "Expect": expectField, "UPGRADE": upgradeField, "Connection": connectionField,
		"Keep-Alive": keepAliveField, "content-Length": contentLengthField, "Proxy-Connection": proxyConnectionField,
		"Transfer-Encoding": transferEncodingField,
		"":                  ordinary, "tf": ordinary, "hos": ordinary, "hosts": ordinary, "Accept": ordinary, "Trailer": ordinary,
		"User-Agent": ordinary, "Content_Length": ordinary, "Transfer_Encoding": ordinary, "Proxy_Connection": ordinary,
		"\u212aeep-Alive": ordinary,
	}
	for name, want := range names {
		if got := specialOf([]byte(name)); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
