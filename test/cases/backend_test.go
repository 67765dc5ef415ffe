package cases

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// recordLimit is how much of a connection's input a backend keeps.
const recordLimit = 1 << 20

// backend is a raw TCP server that keeps the exact bytes that reach it and
// answers each request as its handler says.
type backend struct {
	name string
	addr netip.AddrPort
	ln   net.Listener

	mu     sync.Mutex
	handle handler
	conns  []*upstreamConn
	wg     sync.WaitGroup
}

// handler answers one request, whose head was read and whose body was not. It
// may close the connection; else the next request is read after it returned.
type handler func(u *upstreamConn, r *request)

// upstreamConn is one connection that the gateway made to a backend.
type upstreamConn struct {
	net.Conn
	br     *bufio.Reader
	id     int
	served int // requests whose head was read

	mu       sync.Mutex
	recorded []byte
	total    int64
	over     bool // the peer ended it, or it failed
}

// Read records what it returns.
func (u *upstreamConn) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.total += int64(n)
	if keep := min(n, recordLimit-len(u.recorded)); keep > 0 {
		u.recorded = append(u.recorded, p[:keep]...)
	}
	if err != nil {
		u.over = true
	}
	return n, err
}

func (u *upstreamConn) isOver() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.over
}

// body reads the request's body and keeps it in r.
func (u *upstreamConn) body(r *request) error {
	var b bytes.Buffer
	err := r.readBody(u.br, &b)
	r.body = b.Bytes()
	return err
}

// write sends s; a peer that is gone is not an error of the backend's.
func (u *upstreamConn) write(s string) error {
	_, err := io.WriteString(u, s)
	return err
}

// reset closes the connection with a RST.
func (u *upstreamConn) reset() {
	if c, ok := u.Conn.(*net.TCPConn); ok {
		c.SetLinger(0)
	}
	u.Close()
}

// awaitEnd reads and drops until the peer closes or d has passed; it tells if
// the peer closed.
func (u *upstreamConn) awaitEnd(d time.Duration) bool {
	u.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, u.br)
	ne, ok := err.(net.Error)
	return !(ok && ne.Timeout())
}

// newBackend starts a backend that echoes, see [echo], until another handler is
// set. It ends with the test.
func newBackend(t testing.TB, name string) *backend {
	t.Helper()
	b := newBackendAt(t, name, "127.0.0.1:0")
	return b
}

func newBackendAt(t testing.TB, name, addr string) *backend {
	t.Helper()
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{name: name, ln: ln, addr: netip.MustParseAddrPort(ln.Addr().String())}
	b.handle = b.echo
	b.wg.Go(b.accept)
	t.Cleanup(b.stop)
	return b
}

func (b *backend) accept() {
	for {
		c, err := b.ln.Accept()
		if err != nil {
			return
		}
		u := &upstreamConn{Conn: c}
		u.br = bufio.NewReaderSize(u, 16<<10)
		b.mu.Lock()
		u.id = len(b.conns)
		b.conns = append(b.conns, u)
		b.mu.Unlock()
		b.wg.Go(func() { b.serve(u) })
	}
}

func (b *backend) serve(u *upstreamConn) {
	defer u.Close()
	for {
		h, err := readHead(u.br)
		if err != nil {
			return
		}
		r, err := parseRequestHead(h)
		if err != nil {
			return
		}
		u.served++
		b.mu.Lock()
		handle := b.handle
		b.mu.Unlock()
		handle(u, r)
	}
}

// set replaces the handler for the requests to come.
func (b *backend) set(h handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handle = h
}

// stop ends the listener and all connections.
func (b *backend) stop() {
	b.ln.Close()
	b.mu.Lock()
	for _, u := range b.conns {
		u.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// closeConns ends the connections that are open now.
func (b *backend) closeConns() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.conns {
		u.Close()
	}
}

// open counts the connections that the gateway has not ended.
func (b *backend) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, u := range b.conns {
		if !u.isOver() {
			n++
		}
	}
	return n
}

// mark is a point in a backend's record.
type mark []int

// mark returns the present end of the record.
func (b *backend) mark() mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := make(mark, len(b.conns))
	for i, u := range b.conns {
		u.mu.Lock()
		m[i] = len(u.recorded)
		u.mu.Unlock()
	}
	return m
}

// since returns what each connection received after the mark, without those
// that received nothing.
func (b *backend) since(m mark) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out [][]byte
	for i, u := range b.conns {
		from := 0
		if i < len(m) {
			from = m[i]
		}
		u.mu.Lock()
		if len(u.recorded) > from {
			out = append(out, bytes.Clone(u.recorded[from:]))
		}
		u.mu.Unlock()
	}
	return out
}

// requestsSince returns the whole requests that arrived after the mark.
func (b *backend) requestsSince(m mark) []*request {
	var rs []*request
	for _, stream := range b.since(m) {
		some, _ := parseRequests(stream)
		rs = append(rs, some...)
	}
	return rs
}

// wantNothingSince fails the test when any byte arrived after the mark.
func (b *backend) wantNothingSince(t testing.TB, m mark) {
	t.Helper()
	time.Sleep(5 * time.Millisecond) // a forwarded request would be on its way
	for _, stream := range b.since(m) {
		t.Errorf("backend %s got %q, want nothing", b.name, clip(stream))
	}
}

// wantNoWholeRequestSince fails the test when a request arrived as a whole.
func (b *backend) wantNoWholeRequestSince(t testing.TB, m mark) {
	t.Helper()
	time.Sleep(5 * time.Millisecond)
	for _, r := range b.requestsSince(m) {
		t.Errorf("backend %s got a whole request %q, want none", b.name, r.raw)
	}
}

// manifest is a Service of the backend's name, port 80, with the backend as its
// only endpoint.
func (b *backend) manifest() string { return service("default", b.name, b.addr) }

// echo answers 200 with what it received: the raw head and the body. X-Backend
// names the backend.
func (b *backend) echo(u *upstreamConn, r *request) {
	if err := u.body(r); err != nil {
		u.Close()
		return
	}
	payload := r.raw + string(r.body)
	for _, f := range r.trailers {
		payload += "\r\n" + f.name + ": " + f.value
	}
	length := len(payload)
	if r.method == "HEAD" {
		payload = ""
	}
	u.write(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Backend: %s\r\nContent-Length: %d\r\n\r\n%s", b.name, length, payload))
}

// answer is a handler that reads the body and then sends s.
func answer(s string) handler {
	return func(u *upstreamConn, r *request) {
		if u.body(r) != nil || u.write(s) != nil {
			u.Close()
		}
	}
}

// answerClose is a handler that reads the body, sends s and closes.
func answerClose(s string) handler {
	return func(u *upstreamConn, r *request) {
		if u.body(r) == nil {
			u.write(s)
		}
		u.Close()
	}
}

// ok is a handler that answers 200 with a body of two bytes.
func ok(u *upstreamConn, r *request) {
	body := "ok"
	if r.method == "HEAD" {
		body = ""
	}
	answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"+body)(u, r)
}

// hang is a handler that never answers; it returns when the gateway gives up.
func hang(u *upstreamConn, r *request) {
	if u.body(r) == nil {
		u.awaitEnd(time.Minute)
	}
	u.Close()
}

// byPath is a handler that chooses a handler by the request's path.
func byPath(handlers map[string]handler) handler {
	return func(u *upstreamConn, r *request) {
		path, _, _ := strings.Cut(r.target, "?")
		if h, found := handlers[path]; found {
			h(u, r)
			return
		}
		answer("HTTP/1.1 404 Not Found\r\nX-Backend: no-handler\r\nContent-Length: 0\r\n\r\n")(u, r)
	}
}

// clip shortens what is printed.
func clip(b []byte) []byte {
	if len(b) > 600 {
		return append(bytes.Clone(b[:600]), "..."...)
	}
	return b
}

// idleAfter returns an error while a request that began after the mark is cut
// off but its connection still open.
func (b *backend) idleAfter(m mark) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, u := range b.conns {
		from := 0
		if i < len(m) {
			from = m[i]
		}
		u.mu.Lock()
		_, err := parseRequests(u.recorded[from:])
		open := !u.over
		u.mu.Unlock()
		if err != nil && open {
			return fmt.Errorf("connection %d with half a request is open", i)
		}
	}
	return nil
}

// gate holds handlers back until it is opened, at the test's end at the latest.
type gate struct {
	ch   chan struct{}
	once sync.Once
}

func newGate(t testing.TB) *gate {
	g := &gate{ch: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) wait() { <-g.ch }
func (g *gate) open() { g.once.Do(func() { close(g.ch) }) }

func (g *gate) isOpen() bool {
	select {
	case <-g.ch:
		return true
	default:
		return false
	}
}
