package tlsterm

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestLookup(t *testing.T) {
	hosts := func(names ...string) *generation {
		g := &generation{hosts: map[string]*host{}}
		for _, n := range names {
			g.hosts[n] = &host{listener: n}
		}
		return g
	}
	all := hosts("", "second-example.org", "*.wildcard.org", "fourth-example.wildcard.org", "*.deep.wildcard.org")
	named := hosts("www.example.com", "*.example.com")
	tests := []struct {
		g    *generation
		name string
		want string // "-" for none
	}{
		{all, "second-example.org", "second-example.org"},
		{all, "SECOND-example.ORG", "second-example.org"},
		{all, "x.second-example.org", ""},
		{all, "third.wildcard.org", "*.wildcard.org"},
		{all, "a.b.c.wildcard.org", "*.wildcard.org"},
		{all, "wildcard.org", ""},
		{all, "fourth-example.wildcard.org", "fourth-example.wildcard.org"},
		{all, "x.fourth-example.wildcard.org", "*.wildcard.org"},
		{all, "a.b.deep.wildcard.org", "*.deep.wildcard.org"},
		{all, "deep.wildcard.org", "*.wildcard.org"},
		{all, "", ""},
		{all, "unknown.test", ""},
		{named, "", "-"},
		{named, "unknown.test", "-"},
		{named, "example.com", "-"},
		{named, "www.example.com", "www.example.com"},
		{named, ".example.com", "-"},
		{named, "10.0.0.1", "-"},
		{named, strings.Repeat("a.", 200) + "example.com", "-"},
		{hosts(), "www.example.com", "-"},
	}
	for _, tt := range tests {
		got := "-"
		if h := tt.g.lookup(lower(tt.name)); h != nil {
			got = h.listener
		}
		if got != tt.want {
			t.Errorf("lookup(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// leaf returns the common name of the certificate that a client is shown.
func leaf(t testing.TB, sock *Socket, edit func(*tls.Config)) (string, *link, error) {
	t.Helper()
	cfg := &tls.Config{InsecureSkipVerify: true}
	edit(cfg)
	l := newLink(t, sock)
	c, err := l.shake(cfg)
	if err != nil {
		return "", l, err
	}
	if l.handshake != nil {
		return "", l, l.handshake
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, l, nil
}

func named(name string) func(*tls.Config) {
	return func(c *tls.Config) { c.ServerName = name }
}

// Case B35, the part about certificates.
func TestServerNames(t *testing.T) {
	ca := newAuthority(t)
	issue := func(name string, hosts ...string) *ir.Certificate {
		return ca.issue(t, "ecdsa", name, tomorrow(), hosts...)
	}
	bad := &ir.Certificate{Name: "test/bad", Chain: issue("x", "x.test").Chain, Key: ca.issue(t, "rsa", "y", tomorrow(), "y.test").Key}
	sock := New(Options{}).NewSocket()
	err := sock.Update([]*ir.Listener{
		listener("second-example.org", issue("second", "second-example.org")),
		listener("*.wildcard.org", issue("wildcard", "*.wildcard.org")),
		listener("fourth-example.wildcard.org", issue("fourth", "fourth-example.wildcard.org")),
		listener("expired.org", ca.issue(t, "ecdsa", "expired", yesterday(), "expired.org")),
		listener("bad.org", bad),
		listener("twice.org", bad, issue("twice", "twice.org")),
		listener("none.org"),
		{Name: "test/gw/plain", Hostname: "plain.org"},
	})
	var broken []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var ce *CertificateError
		if errors.As(e, &ce) {
			broken = append(broken, ce.Listener+" "+ce.Certificate)
		} else {
			broken = append(broken, e.Error())
		}
	}
	if got, want := strings.Join(broken, "; "), "test/gw/bad.org test/bad; test/gw/twice.org test/bad; listener test/gw/plain: no tls settings"; got != want {
		t.Errorf("Update reports %q, want %q", got, want)
	}
	tests := []struct {
		sni  string
		want string
		err  error
	}{
		{"second-example.org", "second", nil},
		{"Second-Example.ORG", "second", nil},
		{"third.wildcard.org", "wildcard", nil},
		{"fourth-example.wildcard.org", "fourth", nil},
		{"expired.org", "expired", nil},
		{"twice.org", "twice", nil},
		{"bad.org", "", ErrNoCertificate},
		{"none.org", "", ErrNoCertificate},
		{"plain.org", "", ErrNoCertificate},
		{"wildcard.org", "", ErrUnknownName},
		{"unknown.org", "", ErrUnknownName},
		{"", "", ErrUnknownName},
	}
	for _, tt := range tests {
		t.Run("sni="+tt.sni, func(t *testing.T) {
			each(t, func(t *testing.T, version uint16) {
				got, l, err := leaf(t, sock, func(c *tls.Config) {
					c.ServerName, c.MinVersion, c.MaxVersion = tt.sni, version, version
				})
				if tt.err == nil {
					if err != nil || got != tt.want {
						t.Fatalf("shown %q, %v; want %q", got, err, tt.want)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
					t.Fatalf("the client saw %v, want the alert unrecognized_name", err)
				}
				if !errors.Is(l.handshake, tt.err) {
					t.Fatalf("session: %v, want %v", l.handshake, tt.err)
				}
				if got := l.s.ServerName(); got != lower(tt.sni) {
					t.Fatalf("ServerName of a refused session = %q", got)
				}
			})
		})
	}
}

// A listener for any host takes clients without a server name, and those whose
// name nobody else serves; it never stands in for a listener that is broken.
func TestDefaultListener(t *testing.T) {
	ca := newAuthority(t)
	sock := New(Options{}).NewSocket()
	if err := sock.Update([]*ir.Listener{
		listener("", ca.issue(t, "ecdsa", "default", tomorrow(), "example.test")),
		listener("broken.org"),
	}); err != nil {
		t.Fatal(err)
	}
	for sni, want := range map[string]string{"": "default", "unknown.org": "default", "broken.org": ""} {
		got, _, err := leaf(t, sock, named(sni))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("sni %q: shown %q, %v; want %q", sni, got, err, want)
		}
	}
}

func TestCertificateChoice(t *testing.T) {
	ca := newAuthority(t)
	ecdsa := ca.issue(t, "ecdsa", "ecdsa", tomorrow(), "www.example.com")
	rsa := ca.issue(t, "rsa", "rsa", tomorrow(), "www.example.com")
	ed := ca.issue(t, "ed25519", "ed25519", tomorrow(), "www.example.com")
	other := ca.issue(t, "ecdsa", "other", tomorrow(), "other.example.com")
	expired := ca.issue(t, "ecdsa", "expired", yesterday(), "www.example.com")
	expiredOther := ca.issue(t, "ecdsa", "expired other", yesterday(), "other.example.com")
	onlyRSA := func(c *tls.Config) {
		c.MaxVersion = tls.VersionTLS12
		c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	}
	all := func(*tls.Config) {}
	list := func(c ...*ir.Certificate) []*ir.Certificate { return c }
	tests := []struct {
		name   string
		certs  []*ir.Certificate
		client func(*tls.Config)
		want   string
		now    time.Time
	}{
		{"the first that suits", list(rsa, ecdsa), all, "rsa", time.Now()},
		{"the other order", list(ecdsa, rsa), all, "ecdsa", time.Now()},
		{"a client without ecdsa", list(ecdsa, ed, rsa), onlyRSA, "rsa", time.Now()},
		{"the one with the name", list(other, rsa), all, "rsa", time.Now()},
		{"a name is worth less than a signature", list(ecdsa, ca.issue(t, "rsa", "rsa other", tomorrow(), "other.example.com")), onlyRSA, "rsa other", time.Now()},
		{"none has the name", list(other), all, "other", time.Now()},
		{"the one that is valid", list(expired, ecdsa), all, "ecdsa", time.Now()},
		{"expired with the name before valid without", list(other, expired), all, "expired", time.Now()},
		{"valid among those without the name", list(expiredOther, other), all, "other", time.Now()},
		{"before the clock is known", list(expired, ecdsa), all, "expired", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sock := newSocket(t, tt.certs...)
			if !tt.now.IsZero() {
				sock.t.Rotate(tt.now)
			}
			got, _, err := leaf(t, sock, func(c *tls.Config) { c.ServerName = "www.example.com"; tt.client(c) })
			if err != nil || got != tt.want {
				t.Fatalf("shown %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	t.Run("no common signature", func(t *testing.T) {
		sock := newSocket(t, ed, ecdsa)
		if got, l, err := leaf(t, sock, onlyRSA); err == nil || l.handshake == nil {
			t.Fatalf("shown %q, client: %v, session: %v", got, err, l.handshake)
		}
	})
}

func TestUpdate(t *testing.T) {
	ca := newAuthority(t)
	a, b := ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"), ca.issue(t, "ecdsa", "b", tomorrow(), "www.example.com")
	sock := New(Options{}).NewSocket()
	update := func(ls ...*ir.Listener) {
		t.Helper()
		if err := sock.Update(ls); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := leaf(t, sock, named("www.example.com")); err == nil {
		t.Fatal("a socket without listeners took a handshake")
	}
	update(listener("", a))
	before := sock.current.Load().parsed[a]
	_, open, err := leaf(t, sock, named("www.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	// A client that connected before the update and speaks after it.
	late := newLink(t, sock)

	update(listener("www.example.com", b), listener("", a))
	if sock.current.Load().parsed[a] != before {
		t.Error("a certificate that did not change was parsed again")
	}
	if got, _, err := leaf(t, sock, named("www.example.com")); got != "b" || err != nil {
		t.Errorf("after the update: %q, %v", got, err)
	}
	c, err := late.shake(&tls.Config{InsecureSkipVerify: true, ServerName: "www.example.com"})
	if err != nil || c.ConnectionState().PeerCertificates[0].Subject.CommonName != "b" {
		t.Errorf("the late client: %v", err)
	}
	if err := open.s.Write([]byte("still here")); err != nil {
		t.Errorf("an open session after the update: %v", err)
	}

	update(listener("www.example.com", b))
	if len(sock.current.Load().parsed) != 1 {
		t.Error("a certificate that is gone is kept")
	}
	bad := &ir.Certificate{Name: "test/bad", Chain: []byte("x"), Key: ir.NewSecret([]byte("very secret"))}
	err = sock.Update([]*ir.Listener{listener("www.example.com", bad), {Name: "second", Hostname: "www.example.com", TLS: &ir.TLS{}}, listener("ok.test", a)})
	if err == nil || strings.Contains(err.Error(), "very secret") || !strings.Contains(err.Error(), "test/bad") || !strings.Contains(err.Error(), "taken") {
		t.Errorf("Update: %v", err)
	}
	again := sock.Update([]*ir.Listener{listener("www.example.com", bad, nil)})
	if again == nil || len(again.(interface{ Unwrap() []error }).Unwrap()) != 2 {
		t.Errorf("a bad certificate that did not change is not reported again: %v", again)
	}
}

// Handshakes run while the listeners change all the time: each sees one
// generation or the other.
func TestConcurrentUpdates(t *testing.T) {
	ca := newAuthority(t)
	a, b := ca.issue(t, "ecdsa", "a", tomorrow(), "www.example.com"), ca.issue(t, "ecdsa", "b", tomorrow(), "www.example.com")
	sock := New(Options{MaxHandshakes: 4}).NewSocket()
	if err := sock.Update([]*ir.Listener{listener("www.example.com", a)}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var updates sync.WaitGroup
	for i := range 2 {
		updates.Go(func() {
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c := a
				if n%2 == 0 {
					c = b
				}
				if err := sock.Update([]*ir.Listener{listener("www.example.com", c)}); err != nil {
					t.Error(err)
				}
				sock.t.Rotate(time.Now().Add(time.Duration(n) * time.Hour))
			}
		})
	}
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			cfg := ca.config(versions[i%2])
			cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for range 25 {
				l := newLink(t, sock)
				c, err := l.shake(cfg)
				if err != nil || l.handshake != nil {
					t.Errorf("client: %v, session: %v", err, l.handshake)
					return
				}
				var got [1]byte
				if err := l.s.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				l.do(func() { io.ReadFull(c, got[:]) })
			}
		})
	}
	clients.Wait()
	close(stop)
	updates.Wait()
}
