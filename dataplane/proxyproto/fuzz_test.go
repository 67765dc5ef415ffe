package proxyproto

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzParse checks what holds for any input: a header is as long as it says and not
// longer than is accepted, it does not depend on what follows or in which pieces it
// came, and nothing is waited for without end.
func FuzzParse(f *testing.F) {
	for _, c := range vectorCases() {
		if len(c.in) < 1<<10 {
			f.Add([]byte(c.in), uint16(len(c.in)/2))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		before := bytes.Clone(in)
		h, n, err := Parse(in)
		if !bytes.Equal(in, before) {
			t.Fatal("the input was changed")
		}
		var fault *Fault
		switch {
		case err != nil && (!errors.As(err, &fault) || fault.Reason == "" || n != 0 || h != (Header{})):
			t.Fatalf("%+v, %d, %v", h, n, err)
		case err == nil && n == 0 && (len(in) >= MaxBytes || h != (Header{})):
			t.Fatalf("more than %d bytes are asked for", len(in))
		case n > len(in) || n > MaxBytes || h.Version == 1 && n > max1:
			t.Fatalf("%d bytes of %d", n, len(in))
		case n > 0 && h.Source.IsValid() != h.Destination.IsValid():
			t.Fatalf("half of the addresses: %+v", h)
		case h.Local && h.Source.IsValid():
			t.Fatalf("LOCAL with an address: %+v", h)
		}
		// The first part of it: the same, or more is needed.
		at := min(int(cut), len(in))
		h1, n1, err1 := Parse(in[:at])
		switch {
		case n1 > 0 && (n1 != n || h1 != h || err1 != nil):
			t.Fatalf("with less of what follows it is %+v, %d, and with more %+v, %d, %v", h1, n1, h, n, err)
		case err1 != nil && (err == nil || n != 0):
			t.Fatalf("refused after %d bytes (%v), and then accepted", at, err1)
		case err1 == nil && n1 == 0 && n > 0 && at >= n:
			t.Fatalf("%d bytes are not enough for %d", at, n)
		}
		if n > 0 { // what follows does not matter
			if h2, n2, err2 := Parse(in[:n]); h2 != h || n2 != n || err2 != nil {
				t.Fatalf("alone it is %+v, %d, %v, and not %+v, %d", h2, n2, err2, h, n)
			}
		}
	})
}
