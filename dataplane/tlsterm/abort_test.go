package tlsterm

import (
	"crypto"
	"crypto/tls"
	"io"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/dataplane/ir"
)

// slow is a key that signs when it is told to.
type slow struct {
	crypto.Signer
	asked, goOn chan struct{}
}

func (s slow) Sign(r io.Reader, d []byte, o crypto.SignerOpts) ([]byte, error) {
	s.asked <- struct{}{}
	<-s.goOn
	return s.Signer.Sign(r, d, o)
}

// A client that goes away at any stage leaves no goroutine behind, no place
// taken, no buffer, and the carrier hears nothing more. The bubble fails the
// test when a goroutine is left.
func TestAbort(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com")
	hellos := map[uint16][]byte{}
	for _, v := range versions {
		hellos[v] = clientHello(t, ca.config(v))
	}
	key := ca.key(t, "ecdsa")
	tests := []struct {
		name string
		run  func(t *testing.T, l *link, hello []byte)
	}{
		{"before a byte", func(t *testing.T, l *link, hello []byte) {}},
		{"half a hello", func(t *testing.T, l *link, hello []byte) { l.s.Feed(hello[:len(hello)/2]) }},
		{"waiting for a place", func(t *testing.T, l *link, hello []byte) {
			l.s.socket.t.gate.free = 0
			l.s.Feed(hello)
			if st := l.s.socket.t.Stats(); st.Waiting != 1 {
				t.Errorf("stats %+v, want one waiting", st)
			}
			l.s.Close()
			l.s.socket.t.gate.free = 1
		}},
		{"after the server's flight", func(t *testing.T, l *link, hello []byte) {
			l.s.Feed(hello)
			synctest.Wait()
			l.step()
			if l.wires == 0 {
				t.Error("no flight was sent")
			}
			if st := l.s.socket.t.Stats(); st != (Stats{}) {
				t.Errorf("a handshake that waits for its client has a place: %+v", st)
			}
		}},
		{"after part of the second flight", func(t *testing.T, l *link, hello []byte) {
			l.s.Feed(hello)
			synctest.Wait()
			l.s.Feed([]byte{20, 3, 3, 0})
			synctest.Wait()
		}},
		{"the flight is made and not sent", func(t *testing.T, l *link, hello []byte) {
			l.s.Feed(hello)
			synctest.Wait()
		}},
		{"refused and not told", func(t *testing.T, l *link, hello []byte) {
			if err := l.s.socket.Update(nil); err != nil {
				t.Error(err)
			}
			l.s.Feed(hello)
			synctest.Wait()
		}},
		{"while signing", func(t *testing.T, l *link, hello []byte) {
			k := slow{key, make(chan struct{}), make(chan struct{})}
			l.s.socket.current.Load().hosts[""].certificates[0].pair.PrivateKey = k
			l.s.Feed(hello)
			<-k.asked
			if st := l.s.socket.t.Stats(); st != (Stats{Computing: 1}) {
				t.Errorf("stats while signing: %+v", st)
			}
			l.s.Close()
			close(k.goOn)
		}},
		{"before its turn comes again", func(t *testing.T, l *link, hello []byte) {
			l.s.Feed(hello)
			synctest.Wait()
			g := &l.s.socket.t.gate
			g.enter(false, func() {}) // somebody else has the place
			l.s.Feed([]byte{20, 3, 3, 0, 1, 1})
			synctest.Wait()
			if st := l.s.socket.t.Stats(); st != (Stats{Computing: 1, Waiting: 1}) {
				t.Errorf("stats: %+v", st)
			}
			l.s.Close()
			g.leave()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16) {
				synctest.Test(t, func(t *testing.T) {
					term := New(Options{MaxHandshakes: 1})
					sock := term.NewSocket()
					if err := sock.Update([]*ir.Listener{listener("", cert)}); err != nil {
						t.Fatal(err)
					}
					l := newLink(t, sock)
					tt.run(t, l, hellos[version])
					l.s.Close()
					// Nobody else posts now: the handshake computes or waits.
					wires, posts := l.wires, l.posts
					synctest.Wait()
					if l.posts != posts {
						t.Error("Post after Close")
					}
					l.step()
					l.step()
					if l.shaken != 0 || l.wires != wires {
						t.Errorf("after Close: %d calls of Handshaken, %d of WriteWire", l.shaken, l.wires-wires)
					}
					if st := term.Stats(); st != (Stats{}) {
						t.Errorf("stats after Close: %+v", st)
					}
					if l.s.in.buf != nil || l.s.hs != nil && l.s.hs.out != nil {
						t.Error("a closed session owns a buffer")
					}
				})
			})
		})
	}
}

// WriteWire may find that the connection is gone, and close the session.
func TestCloseInsideWriteWire(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	cfg := ca.config(tls.VersionTLS13)
	t.Run("handshake", func(t *testing.T) {
		l := newLink(t, sock)
		l.onWire = func() { l.s.Close() }
		if err := l.s.Feed(clientHello(t, cfg)); err != nil {
			t.Fatal(err)
		}
		for l.wires == 0 {
			l.busy = true
			l.step()
		}
		settle(l)
		if l.shaken != 0 {
			t.Fatal("Handshaken after Close")
		}
	})
	t.Run("refusal", func(t *testing.T) {
		l := newLink(t, New(Options{}).NewSocket())
		l.onWire = func() { l.s.Close() }
		if err := l.s.Feed(clientHello(t, cfg)); err != nil {
			t.Fatal(err)
		}
		for l.wires == 0 {
			l.busy = true
			l.step()
		}
		if l.shaken != 0 {
			t.Fatal("Handshaken after Close")
		}
	})
	for _, size := range []int{10, 1 << 20} {
		l, _ := open(t, sock, cfg)
		l.onWire = func() { l.s.Close() }
		err := l.s.Write(make([]byte, size))
		if size > batchPlaintext && err != ErrClosed {
			t.Errorf("Write of %d bytes: %v, want ErrClosed", size, err)
		}
		if l.wires == 0 || l.s.out != nil {
			t.Errorf("Write of %d bytes: the session owns a buffer, or nothing was written", size)
		}
	}
}

// A client that waits with its second flight keeps nobody else out.
func TestIdleHandshakesHaveNoPlace(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	hello := clientHello(t, ca.config(tls.VersionTLS13))
	synctest.Test(t, func(t *testing.T) {
		sock.t.gate = gate{free: 1}
		lazy := make([]*link, 20)
		for i := range lazy {
			lazy[i] = newLink(t, sock)
			lazy[i].s.Feed(hello)
		}
		synctest.Wait()
		l := newLink(t, sock)
		// Not verified: the bubble's clock is that of the year 2000.
		if _, err := l.shake(&tls.Config{InsecureSkipVerify: true}); err != nil || l.handshake != nil {
			t.Errorf("client: %v, session: %v", err, l.handshake)
		}
		for _, l := range lazy {
			l.s.Close()
		}
	})
}
