package tlsterm

import (
	"crypto/tls"
	"runtime"
	"testing"
)

// heap returns the bytes that n sessions keep, each. use is what they do before
// they are idle.
func heap(t testing.TB, n int, sock *Socket, cfg *tls.Config, use func(*link, *tls.Conn)) float64 {
	one := func() *Session {
		l, c := open(t, sock, cfg)
		use(l, c)
		l.s.carrier = silent{} // the link and the client are garbage now
		return l.s
	}
	for range 20 {
		one()
	}
	sessions := make([]*Session, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // a second time for what pools held
	runtime.ReadMemStats(&before)
	for i := range sessions {
		sessions[i] = one()
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(sessions)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

// request is one small exchange.
func request(l *link, c *tls.Conn) {
	l.do(func() { c.Write(make([]byte, 500)) })
	l.s.Write(make([]byte, 500))
}

// An idle session keeps what crypto/tls keeps, and little more.
func TestIdleMemory(t *testing.T) {
	ca := newAuthority(t)
	bound := map[uint16]float64{tls.VersionTLS12: 5000, tls.VersionTLS13: 7500}
	each(t, func(t *testing.T, version uint16) {
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		got := heap(t, 300, sock, ca.config(version), request)
		if got > bound[version] {
			t.Errorf("an idle session keeps %.0f bytes, want at most %.0f", got, bound[version])
		}
	})
}
