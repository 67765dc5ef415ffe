package tlsterm

import (
	"crypto/tls"
	"runtime"
	"testing"
)

// FuzzFeed gives a session whatever comes, in pieces of any size: it neither
// panics nor hangs, and leaves nothing behind.
func FuzzFeed(f *testing.F) {
	ca := newAuthority(f)
	sock := newSocket(f, ca.issue(f, "ecdsa", "a", tomorrow(), "www.example.com"))
	for _, v := range versions {
		hello := clientHello(f, ca.config(v))
		f.Add(hello, uint16(len(hello)))
		f.Add(append(hello[:len(hello):len(hello)], 20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 2, 1, 2), uint16(100))
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), uint16(1))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff, 22, 3, 1, 0, 1, 0}, uint16(3))
	f.Add([]byte{22, 3, 1, 0, 1, 1, 21, 3, 1, 0, 2, 1, 90, 21, 3, 1, 0, 2, 1, 0}, uint16(7))
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		l := newLink(t, sock)
		for rest := in; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			if l.s.Feed(rest[:n]) != nil {
				break
			}
			rest = rest[n:]
			settle(l)
		}
		if l.s.phase == phaseOpen {
			t.Fatal("a session was opened by bytes that nobody computed")
		}
		l.s.Close()
		settle(l)
		if l.s.in.buf != nil {
			t.Fatal("a closed session owns a buffer")
		}
	})
}

// settle runs the loop until no handshake computes.
func settle(l *link) {
	for {
		st := l.s.socket.t.Stats()
		l.mu.Lock()
		tasks := l.tasks
		l.tasks = nil
		l.mu.Unlock()
		for _, f := range tasks {
			f()
		}
		if st == (Stats{}) && len(tasks) == 0 {
			return
		}
		runtime.Gosched()
	}
}

// FuzzRecords gives an open session ciphertext that was changed on its way.
func FuzzRecords(f *testing.F) {
	ca := newAuthority(f)
	sock := newSocket(f, ca.issue(f, "ecdsa", "a", tomorrow(), "www.example.com"))
	f.Add([]byte{23, 3, 3, 0, 20}, uint16(0), true)
	f.Add([]byte{21, 3, 3, 0, 2, 1, 0}, uint16(30), false)
	f.Add([]byte{0xff, 0xff}, uint16(3), true)
	cache := map[bool]tls.ClientSessionCache{false: tls.NewLRUClientSessionCache(1), true: tls.NewLRUClientSessionCache(1)}
	f.Fuzz(func(t *testing.T, patch []byte, at uint16, new bool) {
		cfg := ca.config(tls.VersionTLS12)
		if new {
			cfg = ca.config(tls.VersionTLS13)
		}
		cfg.ClientSessionCache = cache[new] // resumption is cheaper
		l, c := open(t, sock, cfg)
		wire := records(l, c, 1, 200)[0]
		changed := false
		for i, b := range patch {
			if k := int(at) + i; k < len(wire) {
				changed = changed || wire[k] != b
				wire[k] = b
			} else {
				wire = append(wire, b)
			}
		}
		if err := l.s.Feed(wire); err != nil {
			t.Fatal(err)
		}
		l.drain()
		if changed && len(l.plain) > 0 {
			t.Fatalf("a changed record gave plaintext")
		}
		l.s.Close()
	})
}
