package cases

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// httpsListener is a listener with certificates from Secrets of its namespace.
func httpsListener(name string, port int, hostname, secrets string) string {
	host := ""
	if hostname != "" {
		host = fmt.Sprintf("hostname: %q, ", hostname)
	}
	return fmt.Sprintf("{name: %s, port: %d, protocol: HTTPS, %stls: {mode: Terminate, certificateRefs: [%s]}}", name, port, host, secrets)
}

// serial returns the serial number of the certificate that a handshake shows.
func serial(addr, serverName string) (*big.Int, error) {
	c, err := tryTLS(addr, serverName, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber, nil
}

// awaitSerial waits until handshakes show the certificate.
func awaitSerial(t testing.TB, addr, serverName string, want certificate) {
	t.Helper()
	eventually(t, patience, func() error {
		got, err := serial(addr, serverName)
		if err != nil {
			return err
		}
		if got.Cmp(want.serial) != 0 {
			return fmt.Errorf("another certificate for %q", serverName)
		}
		return nil
	})
}

// misdirected starts the four listeners of the SNI and Host matrix.
func misdirected(t *testing.T) (addr string, be *backend) {
	be = newBackend(t, "be")
	port := freePort(t)
	cert := newCertificate(t, "example.org", "*.org", "*.wildcard.org")
	start(t, options{listeners: []string{
		httpsListener("any", port, "", "{name: cert}"),
		httpsListener("second", port, "second-example.org", "{name: cert}"),
		httpsListener("wildcard", port, "*.wildcard.org", "{name: cert}"),
		httpsListener("fourth", port, "fourth-example.wildcard.org", "{name: cert}"),
	}}, be.manifest(), cert.secret("default", "cert"),
		routeOn("any", "{name: edge, sectionName: any}", "hostnames: [example.org]\nrules:"+marked("any", "be", prefix("/"))),
		routeOn("second", "{name: edge, sectionName: second}", "rules:"+marked("second", "be", prefix("/"))),
		routeOn("wildcard", "{name: edge, sectionName: wildcard}", "rules:"+marked("wildcard", "be", prefix("/"))),
		routeOn("fourth", "{name: edge, sectionName: fourth}", "rules:"+marked("fourth", "be", prefix("/"))))
	return loopback(port), be
}

func TestMisdirectedRequests(t *testing.T) {
	addr, be := misdirected(t)
	for _, c := range []struct {
		sni, host, rule string
		status          int
	}{
		{"example.org", "example.org", "any", 200},
		{"example.org", "example.org:8443", "any", 200},
		{"EXAMPLE.org", "example.ORG", "any", 200},
		{"second-example.org", "second-example.org", "second", 200},
		{"third-example.wildcard.org", "third-example.wildcard.org", "wildcard", 200},
		{"fourth-example.wildcard.org", "fourth-example.wildcard.org", "fourth", 200},
		{"third-example.wildcard.org", "fifth-example.wildcard.org", "wildcard", 200},
		{"example.org", "second-example.org", "", 421},
		{"example.org", "third-example.wildcard.org", "", 421},
		{"example.org", "unknown-example.org", "", 404},
		{"unknown-example.org", "example.org", "any", 200},
		{"second-example.org", "example.org", "", 421},
		{"second-example.org", "unknown-example.org", "", 421},
		{"third-example.wildcard.org", "fourth-example.wildcard.org", "", 421},
		{"fourth-example.wildcard.org", "third-example.wildcard.org", "", 421},
		{"third-example.wildcard.org", "second-example.org", "", 421},
		{"", "example.org", "any", 200},
		{"", "second-example.org", "", 421},
		{"", "unknown-example.org", "", 404},
	} {
		t.Run(fmt.Sprintf("B35/%s-%s", c.sni, c.host), func(t *testing.T) {
			m := be.mark()
			cl := dialTLS(t, addr, c.sni)
			r := cl.get(c.host, "/")
			wantStatus(t, r, c.status)
			if c.status != 200 {
				be.wantNothingSince(t, m)
			} else if r.get("X-Rule") != c.rule {
				t.Errorf("rule %q answered, want %q", r.get("X-Rule"), c.rule)
			}
		})
	}
	t.Run("B35/one-connection-two-hosts", func(t *testing.T) {
		c := dialTLS(t, addr, "third-example.wildcard.org")
		wantStatus(t, c.get("third-example.wildcard.org", "/"), 200)
		wantStatus(t, c.get("second-example.org", "/"), 421)
	})
	t.Run("B35/absolute-form", func(t *testing.T) { // the target's authority counts
		c := dialTLS(t, addr, "third-example.wildcard.org")
		c.send("GET https://second-example.org/ HTTP/1.1\r\nHost: third-example.wildcard.org\r\n\r\n")
		wantStatus(t, c.response("GET"), 421)
	})
	t.Run("B35/forwarded-fields", func(t *testing.T) {
		q := seen(t, dialTLS(t, addr, "example.org").get("example.org", "/"))
		wantForwarded(t, q, "127.0.0.1", "https", "example.org")
	})
	t.Run("B35/absolute-http-on-tls", func(t *testing.T) {
		c := dialTLS(t, addr, "example.org")
		c.send("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n")
		r := c.response("GET")
		wantStatus(t, r, 200, 400, 421)
		if r.status == 200 {
			if q := seen(t, r); q.get("X-Forwarded-Proto") != "https" {
				t.Errorf("X-Forwarded-Proto %q: it is the connection's, not the target's", q.get("X-Forwarded-Proto"))
			}
		}
	})
}

func TestTLSProtocol(t *testing.T) {
	addr, _ := misdirected(t)
	get := "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run("B35/tls-"+name, func(t *testing.T) {
			c, err := tryTLS(addr, "example.org", func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version })
			if err != nil {
				t.Fatal(err)
			}
			cl := newClient(t, c)
			for range 3 {
				wantStatus(t, cl.get("example.org", "/"), 200)
			}
		})
	}
	t.Run("B35/tls-1.1-refused", func(t *testing.T) {
		c, err := tryTLS(addr, "example.org", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
		if err == nil {
			c.Close()
			t.Error("TLS 1.1 was accepted")
		}
	})
	t.Run("B35/alpn", func(t *testing.T) {
		c, err := tryTLS(addr, "example.org", func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
		if err != nil {
			t.Fatal(err)
		}
		if p := c.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
			t.Errorf("ALPN chose %q", p)
		}
		wantStatus(t, newClient(t, c).get("example.org", "/"), 200)
	})
	t.Run("B35/resumption", func(t *testing.T) {
		for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
			cache := tls.NewLRUClientSessionCache(10)
			resumed := 0
			for range 6 { // over all workers: tickets are shared
				c, err := tryTLS(addr, "example.org", func(c *tls.Config) { c.ClientSessionCache, c.MaxVersion = cache, version })
				if err != nil {
					t.Fatal(err)
				}
				wantStatus(t, newClient(t, c).get("example.org", "/"), 200)
				if c.ConnectionState().DidResume {
					resumed++
				}
				c.Close()
			}
			if resumed < 5 {
				t.Errorf("TLS %s: %d of 5 sessions were resumed", name, resumed)
			}
		}
	})
	t.Run("B35/resumption-on-another-listener", func(t *testing.T) { // a ticket does not carry the old SNI over
		cache := tls.NewLRUClientSessionCache(10)
		with := func(sni string) *client {
			c, err := tryTLS(addr, sni, func(c *tls.Config) { c.ClientSessionCache = sharedCache{cache} })
			if err != nil {
				t.Fatal(err)
			}
			return newClient(t, c)
		}
		wantStatus(t, with("example.org").get("example.org", "/"), 200)
		wantStatus(t, with("second-example.org").get("example.org", "/"), 421)
		wantStatus(t, with("second-example.org").get("second-example.org", "/"), 200)
	})
	t.Run("B35/plain-http-on-tls-port", func(t *testing.T) {
		c := dial(t, addr)
		c.send(get)
		rest, _ := io.ReadAll(c.br)
		if len(rest) > 1000 {
			t.Errorf("got %d bytes", len(rest))
		}
	})
	t.Run("B35/garbage-hello", func(t *testing.T) {
		for _, garbage := range []string{"\x16\x03\x01\xff\xff" + string(make([]byte, 100)), "\x16\x03\x01\x00\x00", "\x00", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", string(make([]byte, 40_000))} {
			c := dial(t, addr)
			c.trySend(garbage)
			c.halfClose()
			io.ReadAll(c.br)
		}
		wantStatus(t, dialTLS(t, addr, "example.org").get("example.org", "/"), 200)
	})
	t.Run("B35/hello-byte-by-byte", func(t *testing.T) {
		raw := dial(t, addr)
		c := tls.Client(dribble{raw.Conn}, &tls.Config{ServerName: "example.org", InsecureSkipVerify: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		cl := newClient(t, c)
		wantStatus(t, cl.get("example.org", "/"), 200)
	})
	t.Run("B35/close-notify", func(t *testing.T) { // Connection: close ends TLS in an orderly way
		c := dialTLS(t, addr, "example.org")
		c.send("GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n")
		wantStatus(t, c.response("GET"), 200)
		if _, err := c.br.ReadByte(); err != io.EOF {
			t.Errorf("the connection ended with %v, want close_notify", err)
		}
	})
	t.Run("B35/large-both-ways", func(t *testing.T) {
		c := dialTLS(t, addr, "example.org")
		c.patient(30 * time.Second)
		body := make([]byte, 4<<20)
		for i := range body {
			body[i] = byte('a' + i%26)
		}
		go c.trySend(fmt.Sprintf("POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if q := seen(t, c.response("POST")); string(q.body) != string(body) {
			t.Errorf("%d bytes came back, want %d equal ones", len(q.body), len(body))
		}
	})
	t.Run("B35/stalled-handshakes-do-not-block", func(t *testing.T) {
		for range 200 {
			c := dial(t, addr)
			c.send("\x16\x03\x01\x02\x00\x01")
		}
		begin := time.Now()
		wantStatus(t, dialTLS(t, addr, "example.org").get("example.org", "/"), 200)
		if took := time.Since(begin); took > 9*time.Second { // a stalled one has 10 s
			t.Errorf("a handshake took %v beside stalled ones", took)
		}
	})
}

// sharedCache gives one session to all server names.
type sharedCache struct{ tls.ClientSessionCache }

func (c sharedCache) Get(string) (*tls.ClientSessionState, bool) {
	return c.ClientSessionCache.Get("all")
}
func (c sharedCache) Put(_ string, s *tls.ClientSessionState) { c.ClientSessionCache.Put("all", s) }

// dribble writes one byte at a time.
type dribble struct{ net.Conn }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func TestCertificates(t *testing.T) {
	be := newBackend(t, "be")
	port := freePort(t)
	addr := loopback(port)
	one, two, other := newCertificate(t, "one.org"), newCertificate(t, "two.org"), newCertificate(t, "other.org")
	expired := newCertificateUntil(t, time.Now().Add(-time.Hour), "expired.org")
	second := newCertificate(t, "one.org", "also.org")
	listeners := []string{
		httpsListener("one", port, "one.org", "{name: one}"),
		httpsListener("two", port, "two.org", "{name: two}"),
		httpsListener("expired", port, "expired.org", "{name: expired}"),
		httpsListener("many", port, "*.many.org", "{name: other}, {name: many}"),
		httpsListener("half", port, "half.org", "{name: other}, {name: no-such-secret}"),
	}
	many := newCertificate(t, "*.many.org")
	g := start(t, options{listeners: listeners}, be.manifest(),
		expired.secret("default", "expired"), other.secret("default", "other"), many.secret("default", "many"),
		route("all", "rules:\n- backendRefs: [{name: be, port: 80}]"))
	g.apply(t, "one.yaml", one.secret("default", "one"))
	g.apply(t, "two.yaml", two.secret("default", "two"))
	get := func(t *testing.T, host string) {
		t.Helper()
		wantStatus(t, dialTLS(t, addr, host).get(host, "/"), 200)
	}
	twoWorks := func(t *testing.T) {
		t.Helper()
		awaitSerial(t, addr, "two.org", two)
		get(t, "two.org")
	}

	t.Run("B35/by-sni", func(t *testing.T) {
		awaitSerial(t, addr, "one.org", one)
		twoWorks(t)
	})
	t.Run("B35/unknown-sni-gets-no-listener", func(t *testing.T) { // no listener without hostname: nothing may answer
		c, err := tryTLS(addr, "unknown.org", nil)
		if err != nil {
			return
		}
		r := newClient(t, c).get("unknown.org", "/")
		wantStatus(t, r, 404, 421)
	})
	t.Run("B35/expired-still-shown", func(t *testing.T) { // and takes no other host down
		awaitSerial(t, addr, "expired.org", expired)
		twoWorks(t)
	})
	t.Run("B35/two-refs", func(t *testing.T) { // the one that suits the name
		awaitSerial(t, addr, "a.many.org", many)
	})
	t.Run("B35/two-refs-one-missing", func(t *testing.T) {
		g.wantCondition(t, "Gateway", "default", "edge", "ResolvedRefs", "False", "InvalidCertificateRef")
		twoWorks(t)
	})
	t.Run("B35/rotation", func(t *testing.T) { // without dropping anyone
		old := dialTLS(t, addr, "one.org")
		wantStatus(t, old.get("one.org", "/"), 200)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !stop.Load() {
					if _, err := serial(addr, "one.org"); err != nil {
						t.Errorf("handshake during rotation: %v", err)
						return
					}
				}
			})
		}
		for i := range 20 {
			g.apply(t, "one.yaml", []certificate{second, one}[i%2].secret("default", "one"))
			time.Sleep(20 * time.Millisecond)
		}
		g.apply(t, "one.yaml", second.secret("default", "one"))
		awaitSerial(t, addr, "one.org", second)
		stop.Store(true)
		wg.Wait()
		wantStatus(t, old.get("one.org", "/"), 200)
	})
	for _, c := range []struct{ name, content string }{
		{"B35/key-of-another-certificate", certificate{cert: one.cert, key: two.key}.secret("default", "one")},
		{"B35/no-pem", certificate{cert: []byte("no pem"), key: []byte("no pem")}.secret("default", "one")},
		{"B35/broken-der", certificate{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("xx")}), key: one.key}.secret("default", "one")},
		{"B35/empty", certificate{}.secret("default", "one")},
		{"B35/deleted", "# nothing here\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.apply(t, "one.yaml", c.content)
			g.wantCondition(t, "Gateway", "default", "edge", "ResolvedRefs", "False", "InvalidCertificateRef")
			eventually(t, patience, func() error { // the last good one, or no handshake at all
				got, err := serial(addr, "one.org")
				if err == nil && got.Cmp(second.serial) != 0 && got.Cmp(one.serial) != 0 {
					return fmt.Errorf("another listener's certificate is shown")
				}
				return nil
			})
			twoWorks(t)
			g.apply(t, "one.yaml", second.secret("default", "one"))
			awaitSerial(t, addr, "one.org", second)
			get(t, "one.org")
		})
	}
}

func TestCertificateGrants(t *testing.T) {
	be := newBackend(t, "be")
	port := freePort(t)
	addr := loopback(port)
	cert := newCertificate(t, "a.org")
	g := start(t, options{listeners: []string{httpsListener("a", port, "a.org", "{name: cert, namespace: vault}")}},
		be.manifest(), cert.secret("vault", "cert"), route("all", "rules:\n- backendRefs: [{name: be, port: 80}]"))
	t.Run("B33/secret-without-grant", func(t *testing.T) {
		if _, err := serial(addr, "a.org"); err == nil {
			t.Error("the Secret of another namespace is shown without a grant")
		}
		g.wantCondition(t, "Gateway", "default", "edge", "ResolvedRefs", "False", "RefNotPermitted")
	})
	t.Run("B33/secret-with-grant", func(t *testing.T) {
		g.apply(t, "grant.yaml", `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: grant, namespace: vault}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: default}]
  to: [{group: "", kind: Secret, name: cert}]
`)
		awaitSerial(t, addr, "a.org", cert)
	})
	t.Run("B33/secret-grant-removed", func(t *testing.T) {
		g.remove(t, "grant.yaml")
		g.wantCondition(t, "Gateway", "default", "edge", "ResolvedRefs", "False", "RefNotPermitted")
	})
}
