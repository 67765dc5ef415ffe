package dataplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/ir"
)

// Headers of the PROXY protocol. The client is 203.0.113.7:4711 or
// [2001:db8::7]:4711, and had connected to port 8443.
const (
	proxy1   = "PROXY TCP4 203.0.113.7 198.51.100.1 4711 8443\r\n"
	proxy1v6 = "PROXY TCP6 2001:db8::7 2001:db8::1 4711 8443\r\n"
	proxy2   = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc6\x33\x64\x01\x12\x67\x20\xfb"
	proxy2v6 = "\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x12\x67\x20\xfb"
	proxyUnknown = "PROXY UNKNOWN\r\n"
	proxyLocal   = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	proxyUnspec  = "\r\n\r\n\x00\r\nQUIT\n\x21\x00\x00\x00"
)

var proxyUnix = "\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8" + strings.Repeat("\x00", 216)

// loopbackPeers are those of tests.
var loopbackPeers = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// proxiedFrom makes a snapshot's socket require the PROXY protocol.
func proxiedFrom(snap *ir.Snapshot, from ...netip.Prefix) *ir.Snapshot {
	socket := *snap.Sockets[0]
	socket.Client.ProxiedFrom = from
	return &ir.Snapshot{Clusters: snap.Clusters, Sockets: []*ir.Socket{&socket}}
}

// introduced is a connection whose first bytes are a header.
type introduced struct {
	net.Conn
	mu     sync.Mutex
	header string
	how    int // 0: by itself; 1: together with what follows; 2: byte by byte
}

func (c *introduced) Write(p []byte) (int, error) {
	c.mu.Lock()
	h := c.header
	c.header = ""
	c.mu.Unlock()
	if c.how == 1 && h != "" {
		if _, err := c.Conn.Write(append([]byte(h), p...)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	for len(h) > 0 {
		n := len(h)
		if c.how == 2 {
			n = 1 // a segment each: there is no Nagle's algorithm in Go's sockets
		}
		if _, err := io.WriteString(c.Conn, h[:n]); err != nil {
			return 0, err
		}
		h = h[n:]
	}
	return c.Conn.Write(p)
}

// introduce connects and says for whom.
func introduce(t testing.TB, addr, header string, how int) *introduced {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &introduced{Conn: c, header: header, how: how}
}

// over returns a client whose one connection is c.
func over(t testing.TB, c net.Conn, protocols ...string) *http.Client {
	t.Helper()
	var used atomic.Bool
	take := func(context.Context, string, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errors.New("a second connection")
		}
		return c, nil
	}
	tr := &http.Transport{DialContext: take, TLSClientConfig: clientTLS(protocols...), ForceAttemptHTTP2: len(protocols) > 0 && protocols[0] == "h2"}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// told is what a backend was told of the client.
func told(w http.ResponseWriter, r *http.Request) {
	h := r.Header
	fmt.Fprint(w, h.Get("X-Forwarded-For"), " ", h.Get("X-Real-Ip"), " ", h.Get("X-Forwarded-Port"), " ", h.Get("X-Forwarded-Proto"))
}

// get returns the body of the answer and its protocol.
func get(t testing.TB, c *http.Client, url string, header ...string) (body, proto string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), resp.Proto
}

// refusals returns the counts of refused connections, by reason, and their sum.
func refusals(t testing.TB, s *Server) (reasons map[string]int, sum int) {
	t.Helper()
	families, err := s.opts.Metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	reasons = make(map[string]int)
	for _, f := range families {
		if f.GetName() != "headgate_proxy_protocol_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			n := int(m.GetCounter().GetValue())
			reasons[m.GetLabel()[0].GetValue()] = n
			sum += n
		}
	}
	return reasons, sum
}

// until waits for what happens at once, or nearly.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in a minute: " + what)
		}
	}
}

// The client that a header names is the client, in each version, over all that a
// socket speaks, however the header comes, and for each request of the connection.
func TestProxyProtocol(t *testing.T) {
	be := backendServer(t, told)
	s := newServer(t, nil)
	cluster := clusterOf("default/be:80", be.URL)
	plain := proxiedFrom(oneRoute(cluster, nil), loopbackPeers...)
	sealed := secure(t, proxiedFrom(oneRoute(cluster, nil), loopbackPeers...))
	both := &ir.Snapshot{Clusters: plain.Clusters, Sockets: []*ir.Socket{plain.Sockets[0], sealed.Sockets[0]}}
	if both.Sockets[0].Name > both.Sockets[1].Name {
		both.Sockets[0], both.Sockets[1] = both.Sockets[1], both.Sockets[0]
	}
	apply(t, s, both)
	four, six, peer := "203.0.113.7 203.0.113.7 8443 ", "2001:db8::7 2001:db8::7 8443 ", "127.0.0.1 127.0.0.1 %d "
	for _, h := range []struct{ name, header, want string }{
		{"1 TCP4", proxy1, four}, {"1 TCP6", proxy1v6, six}, {"1 UNKNOWN", proxyUnknown, peer},
		{"2 IPv4", proxy2, four}, {"2 IPv6", proxy2v6, six}, {"2 LOCAL", proxyLocal, peer}, {"2 UNSPEC", proxyUnspec, peer}, {"2 UNIX", proxyUnix, peer},
	} {
		for _, k := range []struct {
			name, scheme, proto string
			socket              *ir.Socket
			offer               []string
		}{
			{"HTTP", "http", "HTTP/1.1", plain.Sockets[0], nil},
			{"HTTPS", "https", "HTTP/1.1", sealed.Sockets[0], []string{"http/1.1"}},
			{"h2", "https", "HTTP/2.0", sealed.Sockets[0], []string{"h2"}},
		} {
			for how, name := range []string{"by itself", "with what follows", "byte by byte"} {
				t.Run(h.name+"/"+k.name+"/"+name, func(t *testing.T) {
					want := h.want
					if strings.Contains(want, "%d") {
						want = fmt.Sprintf(want, k.socket.Addr.Port())
					}
					c := over(t, introduce(t, k.socket.Addr.String(), h.header, how), k.offer...)
					for range 2 {
						if body, proto := get(t, c, k.scheme+"://a.test/"); body != want+k.scheme || proto != k.proto {
							t.Errorf("got %q by %s, want %q by %s", body, proto, want+k.scheme, k.proto)
						}
					}
				})
			}
		}
	}
	if reasons, sum := refusals(t, s); sum > 0 {
		t.Errorf("refused: %v", reasons)
	}
}

// What is not exactly a header is closed without a word, and no backend hears of it.
func TestConnectionsWithoutAHeaderAreRefused(t *testing.T) {
	be := backendServer(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a backend was asked: %v", r.Header) })
	const request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
	var hello bytes.Buffer
	_ = tls.Client(onlyWrite{&hello}, clientTLS("h2")).Handshake() // it writes the first message
	if hello.Len() < 100 {
		t.Fatalf("a ClientHello of %d bytes", hello.Len())
	}
	long := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff"
	for _, c := range []struct {
		name, sent, reason string
		from               string
		end                bool // the client sends no more
	}{
		{"no header, HTTP", request, "missing", "127.0.0.0/8", false},
		{"no header, TLS", hello.String(), "missing", "127.0.0.0/8", false},
		{"no header, HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "missing", "127.0.0.0/8", false},
		{"garbage", "\x00\xff\x00\xff", "missing", "127.0.0.0/8", false},
		{"malformed, version 1", "PROXY TCP4 203.0.113.7 198.51.100.1 4711\r\n" + request, "malformed", "127.0.0.0/8", false},
		{"malformed, version 2", "\r\n\r\n\x00\r\nQUIT\n\x22\x11\x00\x0c" + request, "malformed", "127.0.0.0/8", false},
		{"over-long, version 1", "PROXY UNKNOWN " + strings.Repeat("x", 200) + "\r\n" + request, "too_long", "127.0.0.0/8", false},
		{"over-long, version 2", long, "too_long", "127.0.0.0/8", false},
		{"a wrong checksum", proxy2[:14] + "\x00\x13" + proxy2[16:] + "\x03\x00\x04abcd" + request, "checksum", "127.0.0.0/8", false},
		{"the end within the header", proxy1[:20], "incomplete", "127.0.0.0/8", true},
		{"a peer that may not, version 1", proxy1 + request, "untrusted", "192.0.2.0/24", false},
		{"a peer that may not, version 2", proxy2 + request, "untrusted", "192.0.2.0/24", false},
		{"a peer that may not, without", request, "untrusted", "192.0.2.0/24", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, nil)
			at := apply(t, s, proxiedFrom(oneRoute(clusterOf("default/be:80", be.URL), nil), netip.MustParsePrefix(c.from)))
			conn := introduce(t, at, c.sent, 0).Conn
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			if c.end {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
			if got, err := io.ReadAll(conn); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("answered %q, %v", got, err)
			}
			if reasons, sum := refusals(t, s); sum != 1 || reasons[c.reason] != 1 {
				t.Errorf("counted %v, want %s", reasons, c.reason)
			}
		})
	}
}

// onlyWrite is a connection that only takes.
type onlyWrite struct{ io.Writer }

func (onlyWrite) Read([]byte) (int, error)         { return 0, io.EOF }
func (onlyWrite) Close() error                     { return nil }
func (onlyWrite) LocalAddr() net.Addr              { return nil }
func (onlyWrite) RemoteAddr() net.Addr             { return nil }
func (onlyWrite) SetDeadline(time.Time) error      { return nil }
func (onlyWrite) SetReadDeadline(time.Time) error  { return nil }
func (onlyWrite) SetWriteDeadline(time.Time) error { return nil }

// A header has the deadline of a head; more of it does not move that.
func TestASlowProxyHeaderIsRefused(t *testing.T) {
	for _, c := range []struct{ name, sent, from string }{
		{"nothing", "", "127.0.0.0/8"}, {"a part", proxy1[:30], "127.0.0.0/8"}, {"half of it, binary", proxy2[:20], "127.0.0.0/8"},
		{"nothing, from a stranger", "", "192.0.2.0/24"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, func(o *Options) { o.Timeouts.Header = 20 * time.Millisecond })
			at := apply(t, s, proxiedFrom(oneRoute(clusterOf("default/be:80"), nil), netip.MustParsePrefix(c.from)))
			conn := introduce(t, at, "", 0)
			if _, err := io.WriteString(conn, c.sent); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(conn); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("answered %q, %v", got, err)
			}
			if reasons, sum := refusals(t, s); sum != 1 || reasons["timeout"] != 1 {
				t.Errorf("counted %v", reasons)
			}
		})
	}
}

// Who connects, says nothing and goes has looked whether somebody listens: load
// balancers do, and so does the controller.
func TestALookAtTheSocketIsNoRefusal(t *testing.T) {
	for _, from := range []string{"127.0.0.0/8", "192.0.2.0/24"} {
		s := newServer(t, nil)
		at := apply(t, s, proxiedFrom(oneRoute(clusterOf("default/be:80"), nil), netip.MustParsePrefix(from)))
		for _, reset := range []bool{false, true} {
			conn := introduce(t, at, "", 0).Conn.(*net.TCPConn)
			until(t, "accepted", func() bool { return s.Connections() == 1 })
			if reset {
				_ = conn.SetLinger(0)
			}
			conn.Close()
			until(t, "closed", func() bool { return s.Connections() == 0 })
		}
		if reasons, sum := refusals(t, s); sum > 0 {
			t.Errorf("from %s: %v", from, reasons)
		}
	}
}

// Whom to trust is asked of the client that the header names; what a proxy says that
// does not know its client is not kept.
func TestProxyProtocolAndTrust(t *testing.T) {
	be := backendServer(t, told)
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	for _, c := range []struct {
		name, trusted, header, want string
	}{
		{"the client is trusted", "203.0.113.0/24", proxy1, "192.0.2.9, 203.0.113.7"},
		{"the proxy is, not the client", "127.0.0.0/8", proxy1, "203.0.113.7"},
		{"the client of LOCAL is the proxy", "127.0.0.0/8", proxyLocal, "192.0.2.9, 127.0.0.1"},
		{"it is not trusted", "203.0.113.0/24", proxyLocal, "127.0.0.1"},
		{"nobody knows the client", "127.0.0.0/8", proxyUnknown, "127.0.0.1"},
		{"nobody knows the client, binary", "127.0.0.0/8", proxyUnspec, "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := proxiedFrom(snap, loopbackPeers...)
			next.Sockets[0].Client.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(c.trusted)}
			at := apply(t, s, next)
			body, _ := get(t, over(t, introduce(t, at, c.header, 1)), "http://a.test/", "X-Forwarded-For", "192.0.2.9", "X-Real-Ip", "-")
			if got, _, _ := strings.Cut(body, " 2"); !strings.HasPrefix(body, c.want+" ") {
				t.Errorf("forwarded %q, want %q", got, c.want)
			}
		})
	}
}

// The named client is the one that is logged, that has a share of a held queue to keep
// to, and whose address a hash takes.
func TestProxyProtocolNamesTheClientEverywhere(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	be := backendServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- struct{}{}
			<-answer
		}
	})
	var out bytes.Buffer
	log, err := accesslog.New(accesslog.Options{Output: &out, Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, func(o *Options) { o.AccessLog = log })
	at := apply(t, s, proxiedFrom(oneRoute(clusterOf("default/be:80", be.URL), nil), loopbackPeers...))
	conn := introduce(t, at, proxy2v6, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		get(t, over(t, conn), "http://a.test/slow")
	}()
	<-asked
	sharer := make(chan netip.Addr, 2)
	for _, w := range s.workers {
		w.Post(func() {
			if c := w.clients.first; c != nil {
				sharer <- c.ex.try(false).Client
			}
		})
	}
	if got := <-sharer; got.String() != "2001:db8::7" {
		t.Errorf("the share is that of %v", got)
	}
	close(answer)
	<-done
	if err := errors.Join(s.Shutdown(t.Context()), log.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Client string `json:"client"`
		Port   int    `json:"client_port"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Client != "2001:db8::7" || line.Port != 4711 {
		t.Errorf("logged %s (%v)", out.Bytes(), err)
	}

	names := []string{"one", "two"}
	ends := make([]string, 0, len(names))
	for _, name := range names {
		ends = append(ends, backendServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }).URL)
	}
	slices.Sort(ends)
	cluster := clusterOf("default/hashed:80", ends...)
	cluster.Balance = ir.BalanceConsistentHash
	cluster.HashOn = ir.HashOn{Kind: ir.HashClient}
	s = newServer(t, nil)
	at = apply(t, s, proxiedFrom(oneRoute(cluster, nil), loopbackPeers...))
	seen := make(map[string]bool)
	for i := range 32 {
		var to [2]string
		for k := range to { // two ports of one client
			header := fmt.Sprintf("PROXY TCP4 203.0.113.%d 198.51.100.1 %d 80\r\n", i, 1000+k)
			to[k], _ = get(t, over(t, introduce(t, at, header, 0)), "http://a.test/")
		}
		if to[0] != to[1] {
			t.Errorf("client %d went to %v", i, to)
		}
		seen[to[0]] = true
	}
	if len(seen) != len(names) {
		t.Errorf("32 clients went to %v only", seen)
	}
}

// Connections keep what they began with; new ones do as the socket says now.
func TestProxyProtocolChangesAtRunTime(t *testing.T) {
	be := backendServer(t, told)
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	at := apply(t, s, snap)
	port := fmt.Sprint(snap.Sockets[0].Addr.Port())
	must := func(c *http.Client, want string) {
		t.Helper()
		if got, _ := get(t, c, "http://a.test/"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	direct, named := "127.0.0.1 127.0.0.1 "+port+" http", "203.0.113.7 203.0.113.7 8443 http"
	old := over(t, introduce(t, at, "", 0))
	must(old, direct)
	apply(t, s, proxiedFrom(snap, loopbackPeers...))
	must(old, direct) // it needs no header any more
	first := over(t, introduce(t, at, proxy1, 0))
	must(first, named)
	waits := introduce(t, at, proxy1[10:], 0)
	if _, err := io.WriteString(waits.Conn, proxy1[:10]); err != nil {
		t.Fatal(err)
	}
	until(t, "accepted", func() bool { return s.Connections() == 3 })
	apply(t, s, proxiedFrom(snap, netip.MustParsePrefix("192.0.2.0/24")))
	stranger := introduce(t, at, "", 0)
	_, _ = io.WriteString(stranger, proxy1)
	if got, _ := io.ReadAll(stranger); len(got) > 0 {
		t.Errorf("a peer that may not any more was answered %q", got)
	}
	if reasons, sum := refusals(t, s); sum != 1 || reasons["untrusted"] != 1 {
		t.Errorf("counted %v", reasons)
	}
	apply(t, s, snap)
	must(over(t, waits), named) // the header that it began with still counts
	must(first, named)
	must(over(t, introduce(t, at, "", 0)), direct)
}

// A process that takes a listening socket over does as its own snapshot says.
func TestProxyProtocolAfterAHandOver(t *testing.T) {
	be := backendServer(t, told)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	old := newServer(t, func(o *Options) { o.Reactor.Share = true })
	at := apply(t, old, snap)
	s := newServer(t, func(o *Options) { o.Predecessor = &fakePredecessor{inherited: handOver(t, old)} })
	apply(t, s, proxiedFrom(snap, loopbackPeers...))
	old.Pause()
	before := over(t, introduce(t, at, proxy2, 1))
	for range 4 {
		if got, _ := get(t, over(t, introduce(t, at, proxy2, 1)), "http://a.test/"); got != "203.0.113.7 203.0.113.7 8443 http" {
			t.Error(got)
		}
	}
	if got, _ := get(t, before, "http://a.test/"); got != "203.0.113.7 203.0.113.7 8443 http" {
		t.Error(got)
	}
	if got := fetch(at); !strings.Contains(got, "reset") && !strings.Contains(got, "EOF") {
		t.Errorf("without a header: %s", got)
	}
}

// Many refusals are few lines, and none is lost for the count.
func TestRefusalsAreLoggedNowAndThen(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	s := newServer(t, func(o *Options) { o.Logger = zap.New(core) })
	at := apply(t, s, proxiedFrom(oneRoute(clusterOf("default/be:80"), nil), loopbackPeers...))
	const n = 50
	for range n {
		conn := introduce(t, at, "", 0)
		_, _ = io.WriteString(conn, "G")
		_, _ = io.ReadAll(conn)
		conn.Close()
	}
	if reasons, _ := refusals(t, s); reasons["missing"] != n {
		t.Errorf("counted %v of %d", reasons, n)
	}
	lines := logs.FilterMessageSnippet("requires the PROXY protocol").All()
	if len(lines) == 0 || len(lines) >= n/2 { // one for each loop in 10 s
		t.Fatalf("%d lines", len(lines))
	}
	f := lines[0].ContextMap()
	if f["socket"] != at || !strings.HasPrefix(fmt.Sprint(f["peer"]), "127.0.0.1:") || !strings.Contains(fmt.Sprint(f["error"]), "does not begin with a header") {
		t.Errorf("logged %v", f)
	}
}
