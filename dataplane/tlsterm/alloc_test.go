// sync.Pool drops at random under the race detector, and so allocates.

//go:build !race

package tlsterm

import "testing"

// What this package adds to crypto/tls allocates nothing. crypto/tls itself
// allocates nothing when it writes, and one reader of 24 bytes for each record
// that it reads and that fits the buffer it has.
func TestAllocs(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		l, c := open(t, newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com")), ca.config(version))
		l.s.carrier = silent{}
		for _, size := range []int{500, 64 << 10} {
			p := make([]byte, size)
			if n := testing.AllocsPerRun(200, func() { l.s.Write(p) }); n > 0 {
				t.Errorf("Write of %d bytes: %v allocations", size, n)
			}
		}
		in := records(l, c, 300, 500)
		i := 0
		next := func() {
			if err := l.s.Feed(in[i]); err != nil {
				t.Fatal(err)
			}
			i++
			for {
				n, err := l.s.Read(l.scratch)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					return
				}
			}
		}
		for range 50 {
			next()
		}
		if n := testing.AllocsPerRun(200, next); n > 1 {
			t.Errorf("a request of 500 bytes: %v allocations, want 1, crypto/tls's", n)
		}
	})
}
