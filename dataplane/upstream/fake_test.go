package upstream

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/metrics"
)

// fakeLoop is a loop with a clock of its own; nothing runs by itself.
type fakeLoop struct {
	now     time.Time
	timers  []*fakeTimer
	posted  []func()
	dialed  []*fakeTransport
	dialErr error
}

func (l *fakeLoop) Now() time.Time { return l.now }

func (l *fakeLoop) Post(fn func()) { l.posted = append(l.posted, fn) }

func (l *fakeLoop) NewTimer(fire func(time.Time)) Timer {
	t := &fakeTimer{loop: l, fire: fire}
	l.timers = append(l.timers, t)
	return t
}

func (l *fakeLoop) Dial(addr netip.AddrPort, c *Conn) (Transport, error) {
	if l.dialErr != nil {
		return nil, l.dialErr
	}
	t := &fakeTransport{addr: addr, conn: c}
	l.dialed = append(l.dialed, t)
	return t, nil
}

// run runs what was posted.
func (l *fakeLoop) run() {
	for len(l.posted) > 0 {
		fn := l.posted[0]
		l.posted = l.posted[1:]
		fn()
	}
}

// advance moves the clock and fires what became due, in order.
func (l *fakeLoop) advance(d time.Duration) {
	end := l.now.Add(d)
	for {
		var next *fakeTimer
		for _, t := range l.timers {
			if t.armed && !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		l.now = next.at
		next.armed = false
		next.fire(l.now)
	}
	l.now = end
}

func (l *fakeLoop) last() *fakeTransport { return l.dialed[len(l.dialed)-1] }

type fakeTimer struct {
	loop  *fakeLoop
	fire  func(time.Time)
	at    time.Time
	armed bool
}

func (t *fakeTimer) Schedule(d time.Duration) { t.at, t.armed = t.loop.now.Add(d), true }
func (t *fakeTimer) Cancel()                  { t.armed = false }

// fakeTransport records what happens to a connection.
type fakeTransport struct {
	addr      netip.AddrPort
	conn      *Conn
	sent      []byte
	paused    bool
	closed    bool
	aborted   bool
	half      bool
	congested bool
}

func (t *fakeTransport) Write(p []byte)       { t.sent = append(t.sent, p...) }
func (t *fakeTransport) AboveHighWater() bool { return t.congested }
func (t *fakeTransport) PauseRead()           { t.paused = true }
func (t *fakeTransport) ResumeRead()          { t.paused = false }
func (t *fakeTransport) CloseWrite()          { t.half = true }
func (t *fakeTransport) Close()               { t.closed = true }
func (t *fakeTransport) Abort(error)          { t.closed, t.aborted = true, true }

// caller is an exchange that writes down what it hears.
type caller struct {
	Stream
	events  []string
	data    []byte
	failure Failure
	onReady func()
}

func (c *caller) OnReady() {
	c.events = append(c.events, "ready")
	if c.onReady != nil {
		c.onReady()
	}
}
func (c *caller) OnDrained() { c.events = append(c.events, "drained") }
func (c *caller) OnFail(f Failure) {
	c.events = append(c.events, "fail "+f.Err.Reason)
	c.failure = f
}
func (c *caller) OnHead() { c.events = append(c.events, "head") }
func (c *caller) OnData(p []byte) {
	c.events = append(c.events, "data")
	c.data = append(c.data, p...)
}
func (c *caller) OnEnd(*message.Headers) { c.events = append(c.events, "end") }

// rig is a manager on fake loops.
type rig struct {
	t     *testing.T
	loops []*fakeLoop
	*Manager
}

func newRig(t *testing.T, loops int, o Options) *rig {
	t.Helper()
	m, err := metrics.New(metrics.Options{Loops: loops})
	if err != nil {
		t.Fatal(err)
	}
	o.Metrics = m
	o.Now = func() time.Time { return time.Unix(1000, 0) }
	r := &rig{t: t}
	for range loops {
		l := &fakeLoop{now: time.Unix(1000, 0)}
		r.loops = append(r.loops, l)
		o.Loops = append(o.Loops, l)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return r.loops[0].now }
	}
	r.Manager = NewManager(o)
	t.Cleanup(r.Close)
	return r
}

// cluster applies one cluster and returns it.
func (r *rig) cluster(pool ir.Pool, balance ir.Balance, addresses ...string) *Cluster {
	r.Update([]*ir.Cluster{spec(pool, balance, addresses...)})
	return r.Cluster("ns/svc:80")
}

func spec(pool ir.Pool, balance ir.Balance, addresses ...string) *ir.Cluster {
	c := &ir.Cluster{Name: "ns/svc:80", Protocol: ir.UpstreamHTTP1, Pool: pool, Balance: balance}
	for _, a := range addresses {
		e := ir.Endpoint{Address: a, Weight: 1}
		e.AddrPort, _ = netip.ParseAddrPort(a)
		c.Endpoints = append(c.Endpoints, e)
	}
	return c
}

// open opens a stream on a loop; it sends a GET when it is ready.
func (r *rig) open(c *Cluster, loop int, t Try) *caller {
	x := &caller{}
	x.Init(r.loops[loop], x, nil)
	x.onReady = func() {
		x.SendHead(get())
		x.SendEnd(nil)
	}
	x.Open(c.Shard(loop), t)
	return x
}

func get() *message.Request {
	return &message.Request{Method: []byte("GET"), Host: []byte("a"), Path: []byte("/"), Major: 1, Minor: 1}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// serve connects a dialled connection and answers its request.
func (r *rig) serve(tr *fakeTransport, answer string) {
	tr.conn.OnConnect()
	tr.conn.OnRead([]byte(answer))
}

func (c *caller) want(t *testing.T, events ...string) {
	t.Helper()
	if !slices.Equal(c.events, events) {
		t.Fatalf("events %q, want %q", c.events, events)
	}
}

var errRefused = errors.New("connection refused")
