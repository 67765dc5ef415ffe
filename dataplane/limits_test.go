package dataplane

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
)

// twoSockets returns a snapshot in which a second socket serves what the first one
// does.
func twoSockets(snap *ir.Snapshot) (*ir.Snapshot, *ir.Socket, *ir.Socket) {
	other := oneRoute(snap.Clusters[0], nil).Sockets[0]
	out := &ir.Snapshot{Clusters: snap.Clusters, Sockets: []*ir.Socket{snap.Sockets[0], other}}
	slices.SortFunc(out.Sockets, func(a, b *ir.Socket) int { return strings.Compare(a.Name, b.Name) })
	return out, snap.Sockets[0], other
}

// changed returns the snapshot with another version of a socket.
func changed(snap *ir.Snapshot, socket *ir.Socket, change func(*ir.Socket)) *ir.Snapshot {
	out := &ir.Snapshot{Clusters: snap.Clusters, Sockets: slices.Clone(snap.Sockets)}
	for i, k := range out.Sockets {
		if k.Name == socket.Name {
			now := *k
			change(&now)
			out.Sockets[i] = &now
		}
	}
	return out
}

// ok answers each request.
func okBackend(t testing.TB) *ir.Cluster {
	b := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	return clusterOf("default/be:80", b.URL)
}

// fields returns n short fields.
func fields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: 1\r\n", i)
	}
	return b.String()
}

// Each socket has limits of its own for heads, which count from the next request
// on, on connections that are open, too.
func TestHeadLimits(t *testing.T) {
	s := newServer(t, func(o *Options) { o.Limits = http1.Limits{RequestLine: 4000, HeaderBytes: 8000, HeaderCount: 50} })
	snap, first, second := twoSockets(oneRoute(okBackend(t), nil))
	first.Client = ir.Client{MaxRequestLine: 300, MaxHeaderBytes: 1024, MaxHeaders: 8}
	apply(t, s, snap)
	longLine := "GET /" + strings.Repeat("a", 400) + " HTTP/1.1\r\nHost: a\r\n\r\n"
	large := "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 2000) + "\r\n\r\n"
	many := "GET / HTTP/1.1\r\nHost: a\r\n" + fields(8) + "\r\n"
	ask := func(what, request string, socket *ir.Socket, want int) {
		t.Helper()
		c := connect(t, socket.Addr.String())
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if got := c.status(patience); got != want {
			t.Errorf("%s is answered %d, want %d", what, got, want)
		}
	}
	ask("a long line", longLine, first, 414)
	ask("large fields", large, first, 431)
	ask("many fields", many, first, 431)
	ask("a long line elsewhere", longLine, second, 200)
	ask("large fields elsewhere", large, second, 200)
	ask("many fields elsewhere", many, second, 200)

	// A connection that was idle, and one in the middle of a head, when the limits
	// became larger.
	idle, begun := connect(t, first.Addr.String()), connect(t, first.Addr.String())
	for _, c := range []*asker{idle, begun} {
		c.send(t, "/")
		if got := c.status(patience); got != 200 {
			t.Fatalf("got %d", got)
		}
	}
	apply(t, s, changed(snap, first, func(k *ir.Socket) { k.Client = ir.Client{} }))
	for what, request := range map[string]string{"a long line": longLine, "large fields": large, "many fields": many} {
		if _, err := io.WriteString(idle, request); err != nil {
			t.Fatal(err)
		}
		if got := idle.status(patience); got != 200 {
			t.Errorf("%s, allowed by now, is answered %d on the same connection", what, got)
		}
	}
	// And smaller again: the process's own hold no longer.
	apply(t, s, changed(snap, first, func(k *ir.Socket) { k.Client = ir.Client{MaxHeaders: 8} }))
	if _, err := io.WriteString(begun, longLine); err != nil {
		t.Fatal(err)
	}
	if got := begun.status(patience); got != 200 {
		t.Errorf("a long line is answered %d", got)
	}
	if _, err := io.WriteString(begun, many); err != nil {
		t.Fatal(err)
	}
	if got := begun.status(patience); got != 431 {
		t.Errorf("many fields, not allowed any more, are answered %d", got)
	}
}

// HTTP/2 has the same limits, and its clients are told of a change.
func TestHeadLimitsOfHTTP2(t *testing.T) {
	s := newServer(t, nil)
	snap := secure(t, oneRoute(okBackend(t), nil))
	snap.Sockets[0].Client = ir.Client{MaxRequestLine: 300, MaxHeaderBytes: 2048, MaxHeaders: 8}
	p := dialH2(t, apply(t, s, snap))
	told := func() (size uint32) {
		t.Helper()
		for size == 0 {
			f, err := p.ReadFrame()
			p.must(err)
			if f, ok := f.(*http2.SettingsFrame); ok && !f.IsAck() {
				size, _ = f.Value(http2.SettingMaxHeaderListSize)
				p.must(p.WriteSettingsAck())
			}
		}
		return size
	}
	if got := told(); got != 2048 {
		t.Errorf("the client is told of %d bytes", got)
	}
	stream := uint32(1)
	ask := func(what, status string, fields ...string) {
		t.Helper()
		p.request(stream, true, fields...)
		p.wantStatus(stream, status)
		for {
			if f, ok := p.next().(*http2.DataFrame); ok && f.StreamEnded() {
				break
			}
		}
		stream += 2
		if t.Failed() {
			t.Fatal(what)
		}
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("x-%d", i), "1")
	}
	long := []string{":path", "/" + strings.Repeat("a", 400)}
	large := []string{"x-large", strings.Repeat("a", 3000)}
	ask("a request", "200")
	ask("a long path", "414", long...)
	ask("large fields", "431", large...)
	ask("many fields", "431", many...)

	apply(t, s, changed(snap, snap.Sockets[0], func(k *ir.Socket) { k.Client = ir.Client{MaxHeaderBytes: 5000} }))
	p.request(stream, true, long...) // the change goes out with what the client does next
	if got := told(); got != 5000 {
		t.Errorf("the client is told of %d bytes", got)
	}
	p.wantStatus(stream, "200")
	stream += 2
	for {
		if f, ok := p.next().(*http2.DataFrame); ok && f.StreamEnded() {
			break
		}
	}
	ask("large fields that are allowed by now", "200", large...)
	ask("many fields that are allowed by now", "200", many...)
	ask("larger ones", "431", "x-large", strings.Repeat("a", 6000))
}
