package tlsterm

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// onePlace is a client's session cache that offers its only session to every
// server.
type onePlace struct{ s *tls.ClientSessionState }

func (c *onePlace) Get(string) (*tls.ClientSessionState, bool) { return c.s, c.s != nil }
func (c *onePlace) Put(_ string, s *tls.ClientSessionState)    { c.s = s }

// visit makes a connection, takes the ticket, and returns the common name of
// the certificate (the one of the first handshake, when it resumes).
func visit(t *testing.T, sock *Socket, cfg *tls.Config) (resumed bool, leaf string, err error) {
	t.Helper()
	l := newLink(t, sock)
	c, err := l.shake(cfg)
	if err == nil {
		err = l.handshake
	}
	if err != nil {
		return false, "", err
	}
	l.takeTicket(t, c)
	cs := c.ConnectionState()
	if cs.DidResume != l.s.Resumed() {
		t.Fatalf("resumed: client %v, session %v", cs.DidResume, l.s.Resumed())
	}
	if l.s.ServerName() != cfg.ServerName {
		t.Fatalf("server name %q, want %q", l.s.ServerName(), cfg.ServerName)
	}
	return cs.DidResume, cs.PeerCertificates[0].Subject.CommonName, nil
}

func TestResumption(t *testing.T) {
	ca := newAuthority(t)
	both := []string{"a.example.com", "b.example.com"}
	a, b := ca.issue(t, "ecdsa", "a", tomorrow(), both...), ca.issue(t, "ecdsa", "b", tomorrow(), both...)
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	listeners := []*ir.Listener{listener("a.example.com", a), listener("b.example.com", b)}
	tests := []struct {
		name string
		// between is what happens after the first visit, to a.example.com; it
		// returns the socket of the second one.
		between func(t *testing.T, term *Terminator, sock *Socket) *Socket
		sni     string // of the second visit
		resumed bool
		leaf    string
		refused bool
	}{
		{name: "same name", sni: "a.example.com", resumed: true, leaf: "a"},
		{name: "another listener's name", sni: "b.example.com", leaf: "b"},
		{
			name: "another name of the same listener",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				both := listener("*.example.com", a)
				both.Name = listeners[0].Name
				if err := sock.Update([]*ir.Listener{both}); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "b.example.com", leaf: "a",
		},
		{name: "unknown name", sni: "c.example.com", refused: true},
		{name: "no name", sni: "", refused: true},
		{
			name: "one rotation later",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				term.Rotate(start.Add(time.Hour))
				return sock
			},
			sni: "a.example.com", resumed: true, leaf: "a",
		},
		{
			name: "two rotations later",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				term.Rotate(start.Add(time.Hour))
				term.Rotate(start.Add(90 * time.Minute)) // too early
				term.Rotate(start.Add(2 * time.Hour))
				return sock
			},
			sni: "a.example.com", resumed: true, leaf: "a",
		},
		{
			name: "three rotations later",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				for i := range 3 {
					term.Rotate(start.Add(time.Duration(i+1) * time.Hour))
				}
				return sock
			},
			sni: "a.example.com", leaf: "a",
		},
		{
			name: "certificate rotated",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				if err := sock.Update([]*ir.Listener{listener("a.example.com", ca.issue(t, "ecdsa", "new", tomorrow(), both...))}); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "a.example.com", resumed: true, leaf: "a",
		},
		{
			name: "certificate gone",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				if err := sock.Update([]*ir.Listener{listener("a.example.com")}); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "a.example.com", refused: true,
		},
		{
			name: "listener gone, its name with another one",
			between: func(t *testing.T, term *Terminator, sock *Socket) *Socket {
				if err := sock.Update([]*ir.Listener{listener("*.example.com", b)}); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "a.example.com", leaf: "b",
		},
		{
			name: "another socket of the same listener",
			between: func(t *testing.T, term *Terminator, _ *Socket) *Socket {
				sock := term.NewSocket()
				if err := sock.Update(listeners); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "a.example.com", resumed: true, leaf: "a",
		},
		{
			name: "another process",
			between: func(t *testing.T, _ *Terminator, _ *Socket) *Socket {
				sock := New(Options{}).NewSocket()
				if err := sock.Update(listeners); err != nil {
					t.Fatal(err)
				}
				return sock
			},
			sni: "a.example.com", leaf: "a",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16) {
				term := New(Options{TicketRotation: time.Hour})
				term.Rotate(start)
				sock := term.NewSocket()
				if err := sock.Update(listeners); err != nil {
					t.Fatal(err)
				}
				cfg := &tls.Config{
					ServerName: "a.example.com", InsecureSkipVerify: true, ClientSessionCache: &onePlace{},
					MinVersion: version, MaxVersion: version,
				}
				if resumed, leaf, err := visit(t, sock, cfg); resumed || leaf != "a" || err != nil {
					t.Fatalf("first visit: resumed %v, shown %q, %v", resumed, leaf, err)
				}
				if tt.between != nil {
					sock = tt.between(t, term, sock)
				}
				cfg.ServerName = tt.sni
				resumed, leaf, err := visit(t, sock, cfg)
				if tt.refused {
					if err == nil {
						t.Fatalf("second visit was not refused: resumed %v, shown %q", resumed, leaf)
					}
					return
				}
				if err != nil || resumed != tt.resumed || leaf != tt.leaf {
					t.Fatalf("second visit: resumed %v, shown %q, %v; want %v, %q", resumed, leaf, err, tt.resumed, tt.leaf)
				}
			})
		})
	}
}

// A ticket that somebody tampered with means a full handshake.
func TestForgedTicket(t *testing.T) {
	term := New(Options{})
	h := &host{listener: "test/gw/l"}
	cs := tls.ConnectionState{ServerName: "a.example.com"}
	for _, ticket := range [][]byte{nil, {}, make([]byte, 200)} {
		if ss := term.tickets.unwrap(ticket, cs, h); ss != nil {
			t.Errorf("ticket % x was taken", ticket)
		}
	}
}
