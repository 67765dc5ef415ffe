package tlsterm

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// each runs f for TLS 1.2 and 1.3.
func each(t *testing.T, f func(t *testing.T, version uint16)) {
	for _, v := range versions {
		t.Run(strings.ReplaceAll(tls.VersionName(v), " ", ""), func(t *testing.T) { f(t, v) })
	}
}

// newSocket returns a socket with one listener for any host.
func newSocket(t testing.TB, certs ...*ir.Certificate) *Socket {
	t.Helper()
	s := New(Options{}).NewSocket()
	if err := s.Update([]*ir.Listener{listener("", certs...)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// config returns a client's configuration for www.example.com.
func (a *authority) config(version uint16) *tls.Config {
	return &tls.Config{ServerName: "www.example.com", RootCAs: a.pool, MinVersion: version, MaxVersion: version}
}

func TestEcho(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		for _, kind := range []string{"ecdsa", "rsa", "ed25519"} {
			for _, chunk := range []int{0, 1, 7} {
				t.Run(fmt.Sprintf("%s/chunk=%d", kind, chunk), func(t *testing.T) {
					sock := newSocket(t, ca.issue(t, kind, "a", tomorrow(), "www.example.com"))
					client, server := pipe(t)
					c := serve(newLoop(t), sock, server, echo)
					c.chunk = chunk
					c.start()
					tc := tls.Client(client, ca.config(version))
					msg := bytes.Repeat([]byte("0123456789"), 5000)
					go tc.Write(msg)
					got := make([]byte, len(msg))
					if _, err := io.ReadFull(tc, got); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, msg) {
						t.Fatal("the echo differs")
					}
					tc.Close()
					<-c.ended
					if c.err != io.EOF {
						t.Fatalf("ended with %v, want EOF", c.err)
					}
				})
			}
		}
	})
}

// Ten MiB each way at once, against a client that reads while it writes.
func TestTransfer(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		const size = 10 << 20
		block := make([]byte, 100_000)
		for i := range block {
			block[i] = byte(i * 7)
		}
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		client, server := pipe(t)
		up, started := sha256.New(), false
		received := 0
		l := newLoop(t)
		c := serve(l, sock, server, func(c *conn, p []byte) {
			up.Write(p)
			received += len(p)
			if !started {
				started = true
				var next func(left int)
				next = func(left int) {
					n := min(left, len(block))
					if err := c.s.Write(block[:n]); err != nil {
						t.Error(err)
						return
					}
					if left -= n; left > 0 {
						l.post(func() { next(left) })
					}
				}
				next(size)
			}
		})
		c.start()
		tc := tls.Client(client, ca.config(version))
		if err := tc.Handshake(); err != nil {
			t.Fatal(err)
		}
		want := sha256.New()
		go func() {
			for left := size; left > 0; {
				n := min(left, len(block))
				tc.Write(block[:n])
				left -= n
			}
			tc.CloseWrite()
		}()
		for left := size; left > 0; left -= min(left, len(block)) {
			want.Write(block[:min(left, len(block))])
		}
		down := sha256.New()
		if _, err := io.CopyN(down, tc, size); err != nil {
			t.Fatal(err)
		}
		<-c.ended
		if c.err != io.EOF || received != size {
			t.Fatalf("received %d of %d, ended with %v", received, size, c.err)
		}
		if !bytes.Equal(up.Sum(nil), want.Sum(nil)) || !bytes.Equal(down.Sum(nil), want.Sum(nil)) {
			t.Fatal("the content differs")
		}
	})
}

// The client's Finished and its first request come in one segment.
func TestPlaintextBehindFinished(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		cfg := ca.config(version)
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		first := newLink(t, sock)
		fc, err := first.shake(cfg)
		if err != nil {
			t.Fatal(err)
		}
		first.takeTicket(t, fc)

		// Only when it resumes is it the client of TLS 1.2 that speaks last.
		l := newLink(t, sock)
		l.together = true
		msg := bytes.Repeat([]byte("x"), 40_000)
		c := tls.Client((*clientEnd)(l), cfg)
		l.do(func() { c.Write(msg) })
		l.await()
		if l.handshake != nil || l.shaken != 1 {
			t.Fatalf("handshake: %v, told %d times", l.handshake, l.shaken)
		}
		if l.feeds != 2 {
			t.Fatalf("fed %d times, want 2", l.feeds)
		}
		if !l.s.Resumed() {
			t.Fatal("not resumed")
		}
		if !bytes.Equal(l.plain, msg) {
			t.Fatalf("got %d bytes, want %d", len(l.plain), len(msg))
		}
	})
}

// An upload that begins with the handshake fills the buffer before the
// handshake's goroutine has its turn; nothing of it may be lost.
func TestUploadWhileComputing(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	l := newLink(t, sock)
	l.together = true
	msg := bytes.Repeat([]byte("0123456789"), 30_000)
	c := tls.Client((*clientEnd)(l), ca.config(tls.VersionTLS13))
	l.do(func() { c.Write(msg) })
	l.await()
	if l.handshake != nil || !bytes.Equal(l.plain, msg) {
		t.Fatalf("got %d bytes, want %d; handshake: %v", len(l.plain), len(msg), l.handshake)
	}
	if !l.wasFull {
		t.Fatal("Full was never true")
	}
	if l.s.Full() {
		t.Fatal("Full after the handshake")
	}
}

func TestCloseNotify(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		cfg := ca.config(version)
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))

		t.Run("client", func(t *testing.T) {
			l := newLink(t, sock)
			c, err := l.shake(cfg)
			if err != nil {
				t.Fatal(err)
			}
			l.do(func() { c.Write([]byte("last words")); c.CloseWrite() })
			if string(l.plain) != "last words" || l.err != io.EOF {
				t.Fatalf("read %q, then %v", l.plain, l.err)
			}
			// The other direction is open still.
			if err := l.s.Write([]byte("answer")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 6)
			l.do(func() { io.ReadFull(c, got) })
			if string(got) != "answer" {
				t.Fatalf("the client read %q", got)
			}
		})
		t.Run("server", func(t *testing.T) {
			l := newLink(t, sock)
			c, err := l.shake(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.s.Write([]byte("bye")); err != nil {
				t.Fatal(err)
			}
			if err := l.s.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			var got []byte
			var rerr error
			l.do(func() { got, rerr = io.ReadAll(c); c.Write([]byte("more")) })
			if string(got) != "bye" || rerr != nil {
				t.Fatalf("the client read %q, %v", got, rerr)
			}
			if string(l.plain) != "more" {
				t.Fatalf("after close_notify the session read %q", l.plain)
			}
			if err := l.s.Write([]byte("x")); err == nil {
				t.Fatal("Write after CloseWrite succeeded")
			}
		})
	})
}

func TestAttributes(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com")
	tests := []struct {
		name     string
		server   []string
		client   []string
		want     string
		wantFail bool
	}{
		{name: "none offered", want: ""},
		{name: "h2 by default", client: []string{"http/1.1", "h2"}, want: "h2"},
		{name: "http/1.1 by default", client: []string{"http/1.1"}, want: "http/1.1"},
		{name: "http/1.0 by default", client: []string{"http/1.0"}, want: "http/1.0"},
		{name: "nothing in common", client: []string{"h3"}, wantFail: true},
		{name: "without h2", server: []string{"http/1.1"}, client: []string{"h2", "http/1.1"}, want: "http/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16) {
				sock := New(Options{NextProtos: tt.server}).NewSocket()
				if err := sock.Update([]*ir.Listener{listener("", cert)}); err != nil {
					t.Fatal(err)
				}
				cfg := ca.config(version)
				cfg.ServerName = "WWW.Example.COM"
				cfg.NextProtos = tt.client
				l := newLink(t, sock)
				_, err := l.shake(cfg)
				if tt.wantFail {
					if err == nil || l.handshake == nil || !strings.Contains(err.Error(), "no application protocol") {
						t.Fatalf("client: %v, session: %v", err, l.handshake)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				s := l.s
				if s.Protocol() != tt.want || s.ServerName() != "www.example.com" || s.Version() != version ||
					tls.CipherSuiteName(s.CipherSuite())[:4] != "TLS_" || s.Resumed() {
					t.Fatalf("protocol %q, name %q, version %x, suite %x, resumed %v",
						s.Protocol(), s.ServerName(), s.Version(), s.CipherSuite(), s.Resumed())
				}
			})
		})
	}
}

func TestOldVersionsAndCiphers(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"), ca.issue(t, "rsa", "b", tomorrow(), "www.example.com"))
	tests := []struct {
		name string
		edit func(*tls.Config)
	}{
		{"tls 1.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }},
		{"cbc", func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA} }},
		{"no forward secrecy", func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := ca.config(tls.VersionTLS12)
			tt.edit(cfg)
			l := newLink(t, sock)
			if _, err := l.shake(cfg); err == nil || l.handshake == nil {
				t.Fatalf("client: %v, session: %v; both should fail", err, l.handshake)
			}
			if err := l.s.Feed([]byte{1}); err != ErrClosed {
				t.Fatalf("Feed after a failed handshake: %v", err)
			}
		})
	}
}

func TestNotTLS(t *testing.T) {
	sock := New(Options{}).NewSocket()
	for _, in := range []string{"GET / HTTP/1.1\r\n\r\n", "\x80\x2e\x01\x00\x02", "PRI * HTTP/2.0\r\n", "\x00", "\x15\x03\x03\x00\x02\x01\x00"} {
		l := newLink(t, sock)
		if err := l.s.Feed([]byte(in)); err != ErrNotTLS {
			t.Errorf("Feed(%q) = %v, want ErrNotTLS", in, err)
		}
		if l.wires != 0 || l.shaken != 0 {
			t.Errorf("Feed(%q): %d writes, %d calls of Handshaken; want none", in, l.wires, l.shaken)
		}
		if err := l.s.Feed([]byte(in)); err != ErrClosed {
			t.Errorf("second Feed(%q) = %v, want ErrClosed", in, err)
		}
	}
}

// What is no ClientHello ends the handshake with an alert, whatever it is.
func TestBadHello(t *testing.T) {
	record := func(typ byte, body ...byte) []byte {
		return append([]byte{typ, 3, 1, byte(len(body) >> 8), byte(len(body))}, body...)
	}
	tests := []struct {
		name  string
		in    []byte
		alert bool
	}{
		{"oversized record", []byte{22, 3, 1, 0xff, 0xff}, true},
		{"not a hello", record(22, 2, 0, 0, 0), true},
		{"hello that does not parse", record(22, 1, 0, 0, 2, 3, 3), true},
		{"endless message", record(22, 1, 0xff, 0xff, 0xff), true},
		{"empty record", record(22), true},
		{"unknown version", []byte{22, 0x50, 0x54, 0, 1, 1}, false},
		{"alert behind half a hello", append(record(22, 1, 0, 1, 0), record(21, 2, 40)...), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t, New(Options{}).NewSocket())
			if err := l.s.Feed(tt.in); err != nil {
				t.Fatal(err)
			}
			l.await()
			if l.handshake == nil {
				t.Fatal("the handshake did not fail")
			}
			if got := len(l.toClient) == 7 && l.toClient[0] == 21 && l.toClient[5] == 2; got != tt.alert {
				t.Fatalf("sent % x; alert wanted: %v", l.toClient, tt.alert)
			}
		})
	}
}

func TestEndlessInput(t *testing.T) {
	t.Run("one record that never ends", func(t *testing.T) {
		l := newLink(t, New(Options{}).NewSocket())
		in := append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 100)...)
		if err := l.s.Feed(in); err != nil {
			t.Fatal(err)
		}
		if cap(l.s.in.buf.b) > 1<<10 {
			t.Fatalf("%d bytes are held for %d that came", cap(l.s.in.buf.b), len(in))
		}
		if l.s.phase != phaseHello {
			t.Fatal("a goroutine was started for part of a record")
		}
	})
	t.Run("records without end", func(t *testing.T) {
		// Warnings, which TLS 1.2 lets pass; crypto/tls counts them.
		l := newLink(t, New(Options{}).NewSocket())
		l.s.Feed([]byte{22, 3, 1, 0, 1, 1})
		for range 100 {
			if l.s.Feed([]byte{21, 3, 1, 0, 2, 1, 90}) != nil {
				break
			}
		}
		l.await()
		if l.handshake == nil {
			t.Fatal("the handshake did not fail")
		}
	})
	t.Run("a hello in tiny pieces without end", func(t *testing.T) {
		l := newLink(t, New(Options{}).NewSocket())
		l.s.Feed([]byte{22, 3, 1, 0, 4, 1, 0, 0xff, 0xff})
		var total int
		for !l.s.Full() {
			l.s.Feed([]byte{22, 3, 1, 0, 1, 7})
			total += 6
			if total > maxUnread {
				t.Fatal("never full")
			}
		}
		l.await()
		if l.handshake == nil {
			t.Fatal("the handshake did not fail")
		}
	})
	t.Run("the last piece is part of a record", func(t *testing.T) {
		l := newLink(t, New(Options{}).NewSocket())
		l.s.Feed([]byte{22, 3, 1, 0, 4, 1, 0, 0xff, 0xff})
		total := 9
		for ; total+6 < handshakeInput; total += 6 {
			l.s.Feed([]byte{22, 3, 1, 0, 1, 7})
		}
		settle(l) // all of it is taken; the goroutine waits
		l.s.Feed([]byte{22, 3, 1, 0, 200, 7, 7, 7, 7, 7, 7, 7})
		if !l.s.Full() {
			t.Fatal("not full")
		}
		l.await()
		if !errors.Is(l.handshake, ErrTooMuchInput) {
			t.Fatalf("handshake: %v, want ErrTooMuchInput", l.handshake)
		}
	})
	t.Run("a caller that does not stop", func(t *testing.T) {
		sock := New(Options{}).NewSocket()
		sock.t.gate.free = 0 // nothing is taken
		l := newLink(t, sock)
		var err error
		for i := 0; err == nil && i < 100; i++ {
			err = l.s.Feed(append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 1<<14)...))
		}
		if err != ErrTooMuchInput {
			t.Fatalf("Feed: %v, want ErrTooMuchInput", err)
		}
		if st := sock.t.Stats(); st.Waiting != 0 {
			t.Fatalf("%d handshakes wait after the session has failed", st.Waiting)
		}
	})
	t.Run("plaintext that nobody reads", func(t *testing.T) {
		ca := newAuthority(t)
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		l := newLink(t, sock)
		if _, err := l.shake(ca.config(tls.VersionTLS13)); err != nil {
			t.Fatal(err)
		}
		var err error
		for i := 0; err == nil && i < 100; i++ {
			err = l.s.Feed(make([]byte, 64<<10))
		}
		if err != ErrTooMuchInput {
			t.Fatalf("Feed: %v, want ErrTooMuchInput", err)
		}
	})
}

// A record that was changed on its way ends the session with an alert.
func TestCorruptRecord(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		l := newLink(t, sock)
		c, err := l.shake(ca.config(version))
		if err != nil {
			t.Fatal(err)
		}
		l.corrupt = true
		var cerr error
		l.do(func() { c.Write([]byte("hello")); _, cerr = c.Read(make([]byte, 1)) })
		if l.err == nil || len(l.plain) > 0 {
			t.Fatalf("read %q, %v", l.plain, l.err)
		}
		if cerr == nil || !strings.Contains(cerr.Error(), "bad record MAC") {
			t.Fatalf("the client saw %v", cerr)
		}
	})
}

// Methods at the wrong time are harmless.
func TestPhases(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	l := newLink(t, sock)
	early := func(when string) {
		t.Helper()
		if n, err := l.s.Read(make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("%s: Read = %d, %v", when, n, err)
		}
		if err := l.s.Write([]byte("x")); err != ErrHandshaking {
			t.Errorf("%s: Write = %v", when, err)
		}
		if err := l.s.CloseWrite(); err != ErrHandshaking {
			t.Errorf("%s: CloseWrite = %v", when, err)
		}
		if err := l.s.Feed(nil); err != nil {
			t.Errorf("%s: Feed(nil) = %v", when, err)
		}
	}
	early("before the hello")
	hello := clientHello(t, ca.config(tls.VersionTLS13))
	if err := l.s.Feed(hello); err != nil {
		t.Fatal(err)
	}
	early("in the handshake")
	l.s.Close()
	l.s.Close()
	if _, err := l.s.Read(make([]byte, 1)); err != ErrClosed {
		t.Errorf("Read after Close = %v", err)
	}
	if err := l.s.Write([]byte("x")); err != ErrClosed {
		t.Errorf("Write after Close = %v", err)
	}
	if err := l.s.CloseWrite(); err != ErrClosed {
		t.Errorf("CloseWrite after Close = %v", err)
	}
	if l.s.Full() {
		t.Error("Full after Close")
	}
}

// Write hands over one piece for each 64 KiB, and an idle session owns no
// buffer.
func TestBatching(t *testing.T) {
	ca := newAuthority(t)
	each(t, func(t *testing.T, version uint16) {
		sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
		l := newLink(t, sock)
		c, err := l.shake(ca.config(version))
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, tt := range []struct{ n, wires int }{
			{1, 1}, {1024, 1}, {1025, 1}, {16 << 10, 1}, {64 << 10, 1}, {64<<10 + 1, 2}, {200_000, 4}, {16 << 10, 1}, {16<<10 + 1, 1}, {0, 0},
		} {
			before := l.wires
			if err := l.s.Write(make([]byte, tt.n)); err != nil {
				t.Fatal(err)
			}
			if got := l.wires - before; got != tt.wires {
				t.Errorf("Write of %d bytes: %d calls of WriteWire, want %d", tt.n, got, tt.wires)
			}
			total += tt.n
		}
		l.do(func() { io.CopyN(io.Discard, c, int64(total)) })
		l.do(func() { c.Write(make([]byte, 100_000)) })
		if len(l.plain) != 100_000 {
			t.Fatalf("read %d bytes", len(l.plain))
		}
		if l.s.out != nil || l.s.in.buf != nil {
			t.Error("an idle session owns a buffer")
		}
	})
}

// A panic in a handshake ends that session only.
func TestPanic(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	sock.current.Load().hosts[""].certificates[0].pair.PrivateKey = panicking{ca.key(t, "ecdsa")}
	l := newLink(t, sock)
	c := tls.Client((*clientEnd)(l), ca.config(tls.VersionTLS13))
	go c.Handshake()
	l.await()
	if l.handshake == nil || !strings.Contains(l.handshake.Error(), "out of order") {
		t.Fatalf("handshake: %v", l.handshake)
	}
	l.mu.Lock()
	l.cut = true
	l.mu.Unlock()
	l.cond.Broadcast()
	if st := sock.t.Stats(); st != (Stats{}) {
		t.Fatalf("stats after a panic: %+v", st)
	}
}

// Many connections share one loop.
func TestManyClients(t *testing.T) {
	ca := newAuthority(t)
	sock := newSocket(t, ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"))
	l := newLoop(t)
	errs := make(chan error, 40)
	for i := range cap(errs) {
		client, server := pipe(t)
		serve(l, sock, server, echo).start()
		go func() { errs <- talk(client, ca.config(versions[i%2])) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func talk(nc net.Conn, cfg *tls.Config) error {
	c := tls.Client(nc, cfg)
	defer c.Close()
	for i := range 10 {
		msg := bytes.Repeat([]byte{byte('a' + i)}, 3000)
		if _, err := c.Write(msg); err != nil {
			return err
		}
		got := make([]byte, len(msg))
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		if !bytes.Equal(got, msg) {
			return errors.New("the echo differs")
		}
	}
	return nil
}
