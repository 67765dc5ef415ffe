package upstream

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/pressure"
)

// fill opens streams on the loop until one is held, which is returned, and
// connects those that are not.
func (r *rig) fill(c *Cluster, loop int) *caller {
	for {
		x := r.open(c, loop, Try{})
		if x.Held() {
			return x
		}
		r.loops[loop].last().conn.OnConnect()
	}
}

// The last places are paced: who finds none is held and gets one by and by,
// though none came back.
func TestLastPlacesArePaced(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 20}, 0, "10.0.0.1:80")
	x := r.fill(c, 0)
	if s := c.Stats(); s.Active < 17 || s.Active == 20 || s.Held != 1 || s.State != pressure.Holding {
		t.Fatalf("%+v", s)
	}
	x.Paused()
	r.loops[0].advance(5 * time.Second)
	if x.Held() || c.Stats().Held != 0 {
		t.Fatalf("still held: %+v", c.Stats())
	}
	for range 20 {
		r.open(c, 0, Try{})
	}
	r.loops[0].advance(4 * time.Second)
	if s := c.Stats(); s.Active != 20 {
		t.Fatalf("places stay free: %+v", s)
	}
}

func TestNobodyIsShedWhileThereIsAPlace(t *testing.T) {
	r := newRig(t, 1, Options{Pressure: ir.Pressure{Held: 2}})
	c := r.cluster(ir.Pool{Size: 20}, 0, "10.0.0.1:80")
	for i := range 22 {
		if x := r.open(c, 0, Try{}); x.failure.Err != nil {
			t.Fatalf("request %d of 22: %v", i, x.failure.Err)
		}
	}
	x := r.open(c, 0, Try{})
	x.want(t, "fail pool_full")
	if x.failure.RetryAfter < time.Second {
		t.Errorf("to come again after %v", x.failure.RetryAfter)
	}
	if s := c.Stats(); s.Active != 20 || s.Held != 2 || s.State != pressure.Shedding {
		t.Errorf("%+v", s)
	}
}

func TestHeldBytesAreBounded(t *testing.T) {
	r := newRig(t, 1, Options{Pressure: ir.Pressure{HeldBytes: 1000}})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	if x := r.open(c, 0, Try{Bytes: 5000}); x.failure.Err != nil || !x.Keep(1<<20) {
		t.Fatal("what is not held has no bound")
	}
	x := r.open(c, 0, Try{Bytes: 600})
	if !x.Keep(300) || x.Keep(200) {
		t.Error("the bound is not 1000")
	}
	r.open(c, 0, Try{Bytes: 200}).want(t, "fail pool_full")
	x.Shed()
	x.want(t, "fail pool_full")
	if s := c.Stats(); s.Held != 0 || s.HeldBytes != 0 {
		t.Errorf("%+v", s)
	}
	x.Shed() // nothing more happens
	x.want(t, "fail pool_full")
}

func TestOneClientCannotTakeTheWholeQueue(t *testing.T) {
	r := newRig(t, 1, Options{Pressure: ir.Pressure{Held: 30}})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	var shed *caller
	for range 30 {
		if x := r.open(c, 0, Try{Client: netip.MustParseAddr("192.0.2.1")}); !x.Held() {
			shed = x
		}
	}
	if n := c.Stats().Held; n < 19 || n > 21 || shed == nil || shed.failure.Err.Reason != ReasonPoolShare || shed.failure.RetryAfter == 0 {
		t.Fatalf("one client has %d of 30 held", n)
	}
	if x := r.open(c, 0, Try{Client: netip.MustParseAddr("192.0.2.2")}); !x.Held() {
		t.Error("another client found no room")
	}
}

// Between loops the oldest goes first, not the loop that gives the place back.
func TestNoLoopStarves(t *testing.T) {
	r := newRig(t, 2, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	other := r.open(c, 1, Try{}) // loop 1 has no place that could come back
	for _, l := range r.loops {
		l.advance(time.Second)
	}
	var own []*caller
	for range 5 {
		own = append(own, r.open(c, 0, Try{}))
	}
	tr.conn.OnRead([]byte(okAnswer))
	r.loops[1].run()
	if other.Held() || !own[0].Held() {
		t.Fatalf("held: other loop %v, own %v", other.Held(), own[0].Held())
	}
	// The other loop's request goes away before its turn: the place comes back.
	other.Cancel()
	r.loops[0].run()
	if own[0].Held() {
		t.Error("a place that another loop gave back did not come here")
	}
	gone := r.open(c, 1, Try{})
	for _, l := range r.loops {
		l.advance(time.Second)
	}
	own[0].Cancel() // a place for the oldest, own[1]
	if own[1].Held() {
		t.Error("the oldest one is not served")
	}
	for _, x := range own[2:] {
		x.Cancel()
	}
	late := r.open(c, 0, Try{})
	own[1].Cancel() // for loop 1, by Post
	gone.Cancel()   // but who waited there goes
	r.loops[1].run()
	r.loops[0].run()
	if late.Held() {
		t.Error("the place was lost between the loops")
	}
}

func TestHungUpstreamComesBack(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 5}, 0, "10.0.0.1:80")
	l := r.loops[0]
	var all []*caller
	for range 200 {
		all = append(all, r.open(c, 0, Try{}))
	}
	for _, tr := range l.dialed {
		tr.conn.OnConnect()
	}
	l.advance(6 * time.Second)
	ready, timeout, full := 0, 0, 0
	for _, x := range all {
		switch {
		case x.failure.Err == nil:
			ready++
		case x.failure.Err.Reason == ReasonPoolTimeout && x.failure.RetryAfter >= time.Second:
			timeout++
		case x.failure.Err.Reason == ReasonPoolFull && x.failure.RetryAfter >= time.Second:
			full++
		}
	}
	if ready != 5 || timeout != 100 || full != 95 {
		t.Fatalf("%d have a place, %d were held for too long, %d were shed", ready, timeout, full)
	}
	for _, tr := range l.dialed {
		tr.conn.OnRead([]byte(okAnswer))
	}
	l.advance(time.Second)
	for i := range 200 {
		x := r.open(c, 0, Try{})
		if x.failure.Err != nil || x.Held() {
			t.Fatalf("request %d after it was back: %v, held %v", i, x.failure.Err, x.Held())
		}
		for _, tr := range l.dialed {
			if tr.conn.stream == &x.Stream {
				tr.conn.OnRead([]byte(okAnswer))
			}
		}
		l.advance(10 * time.Millisecond)
	}
	if s := c.Stats(); s.Active != 0 || s.Held != 0 {
		t.Errorf("%+v", s)
	}
}

func TestMorePlacesServeTheHeld(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	held := []*caller{r.open(c, 0, Try{}), r.open(c, 0, Try{})}
	r.cluster(ir.Pool{Size: 3}, 0, "10.0.0.1:80")
	r.loops[0].run()
	for i, x := range held {
		if x.Held() {
			t.Errorf("request %d is still held: %+v", i, c.Stats())
		}
	}
}

// Tunnels keep their places, and say nothing of how long a request takes.
func TestTunnelsAreNoService(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 2}, 0, "10.0.0.1:80")
	x := r.open(c, 0, Try{Streaming: true})
	r.serve(r.loops[0].last(), "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if c.Stats().Active != 1 {
		t.Fatal("a tunnel has no place")
	}
	r.loops[0].advance(time.Hour)
	if got := x.residence(); got >= 0 {
		t.Errorf("a tunnel's hour counts as a service of %v", got)
	}
	x.Close()
	if c.Stats().Active != 0 {
		t.Error("the tunnel's place did not come back")
	}
}

// What nobody waits for any more does not get a place.
func TestHeldClientThatLeft(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{Size: 1}, 0, "10.0.0.1:80")
	r.open(c, 0, Try{})
	tr := r.loops[0].last()
	tr.conn.OnConnect()
	left := &caller{}
	asked := 0
	left.Init(r.loops[0], left, func() bool { asked++; return true })
	left.Open(c.Shard(0), Try{})
	stays := r.open(c, 0, Try{})
	if asked != 0 {
		t.Error("asked before its turn")
	}
	tr.conn.OnRead([]byte(okAnswer))
	left.want(t, "fail "+ReasonPoolGone)
	stays.want(t, "ready")
	if s := c.Stats(); s.Active != 1 || s.Held != 0 || asked != 1 {
		t.Errorf("%+v, asked %d times", s, asked)
	}
}

// deep notes how deep the stack was when its stream failed.
type deep struct {
	caller
	most *int
}

func (d *deep) OnFail(f Failure) {
	d.caller.OnFail(f)
	*d.most = max(*d.most, runtime.Callers(0, make([]uintptr, 1<<12)))
}

// TestManyHeldFailAtOnce checks that held streams which fail as soon as they have
// their place (no descriptor is left) don't call one another: with a long queue
// there would be no end to the stack.
func TestManyHeldFailAtOnce(t *testing.T) {
	r := newRig(t, 1, Options{Pressure: ir.Pressure{Off: true}})
	c := r.cluster(ir.Pool{Size: 1}, ir.BalanceRoundRobin, one)
	first := r.open(c, 0, Try{})
	const held = 100
	most := 0
	all := make([]*deep, held)
	for i := range all {
		all[i] = &deep{most: &most}
		all[i].Init(r.loops[0], all[i], nil)
		all[i].Open(c.Shard(0), Try{})
		if !all[i].Held() {
			t.Fatalf("stream %d is not held", i)
		}
	}
	r.loops[0].dialErr = errRefused
	first.Cancel()
	for i, x := range all {
		if x.Active() || x.failure.Err == nil {
			t.Fatalf("stream %d is left", i)
		}
	}
	if s := c.Stats(); s.Active != 0 || s.Held != 0 {
		t.Errorf("stats %+v", s)
	}
	if most > 60 {
		t.Errorf("%d streams that fail at once are %d calls deep", held, most)
	}
}
