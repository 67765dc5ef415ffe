package pressure

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

var noAddr netip.Addr

func TestKnee(t *testing.T) {
	for _, tc := range []struct {
		size  int
		theta float64
		want  int64
	}{
		// Below 1/(1-theta) places U can't be at theta while one is free.
		{1, 0.85, 1}, {2, 0.85, 2}, {6, 0.85, 6}, {7, 0.85, 6}, {8, 0.85, 7}, {20, 0.85, 17},
		{50, 0.85, 43}, {100, 0.85, 85}, {1024, 0.85, 871}, {50, 1, 50}, {50, 0.01, 1}, {3, 1e-9, 1},
	} {
		g := newGate(t, Limits{Size: tc.size, Theta: tc.theta})
		if got := g.set.Load().knee; got != tc.want {
			t.Errorf("a pool of %d at theta %v: %d places without a token, want %d", tc.size, tc.theta, got, tc.want)
		}
		n := 0
		for g.Loop(0).Enter(epoch) {
			n++
		}
		if int64(n) < tc.want || n > tc.size {
			t.Errorf("a pool of %d at theta %v gave out %d places", tc.size, tc.theta, n)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		l    Limits
		want string
	}{
		{"no size", Limits{}, "a pool of 0"},
		{"theta above 1", Limits{Size: 1, Theta: 1.1}, "theta 1.1"},
		{"negative theta", Limits{Size: 1, Theta: -0.1}, "theta -0.1"},
		{"negative bytes", Limits{Size: 1, HeldBytes: -1}, "negative"},
		{"negative time", Limits{Size: 1, HoldTime: -1}, "negative"},
	} {
		if _, err := New(Options{Start: epoch, Limits: tc.l}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	g := newGate(t, Limits{Size: 7})
	if got, want := g.Limits(), (Limits{Size: 7, Theta: 0.85, Held: 100, HeldBytes: 16 << 20, HoldTime: 5 * time.Second}); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
	if err := g.Update(Limits{}); err == nil || g.Limits().Size != 7 {
		t.Errorf("a bad update: %v, %+v", err, g.Limits())
	}
}

// At U = 1 the rate is 0: what is held gets the places that come back.
func TestFullPoolIsNoDeadlock(t *testing.T) {
	for _, size := range []int{1, 3, 7, 50} {
		g := newGate(t, Limits{Size: size})
		l := g.Loop(0)
		now := epoch
		l.Hold(now, noAddr, 0)
		for n := 0; n < size; {
			now = now.Add(l.Next(now))
			for l.Enter(now) {
				n++
			}
			if now.Sub(epoch) > 10*time.Second {
				t.Fatalf("a pool of %d gave out %d places in 10 s: %+v, tokens %v, next %v", size, n, g.Stats(now), g.tokens, l.Next(now))
			}
		}
		for range 1000 {
			now = now.Add(time.Hour) // nothing comes back for years
			if l.Enter(now) {
				t.Fatalf("a pool of %d gave out more", size)
			}
		}
		l.Leave(time.Hour)
		if !l.Enter(now) {
			t.Errorf("a pool of %d: the place that came back was not given out", size)
		}
	}
}

func TestTokensFade(t *testing.T) {
	g := newGate(t, Limits{Size: 100})
	l := g.Loop(0)
	now := serveFor(g, 85, 10*time.Millisecond, time.Second)
	l.Hold(now, noAddr, 0)
	for range 50 {
		now = now.Add(10 * time.Millisecond)
		l.Next(now)
	}
	l.Release(noAddr, 0)
	if got := g.Stats(now).Limit; got != 100 {
		t.Fatalf("the limit is %d after half a second of holding, want 100", got)
	}
	// Nobody is held for long: the next growth is paced again.
	l.Next(now)
	now = now.Add(20 * time.Second)
	l.Next(now)
	if got := g.Stats(now).Limit; got != 85 {
		t.Errorf("the limit is %d after 20 calm seconds, want 85", got)
	}
}

func TestUpdate(t *testing.T) {
	g := newGate(t, Limits{Size: 10, Theta: 1})
	l := g.Loop(0)
	for l.Enter(epoch) {
	}
	if err := g.Update(Limits{Size: 4, Theta: 1}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if l.Enter(epoch) != (i > 6) {
			t.Fatalf("after %d came back of 10, with a pool of 4: wrong", i)
		}
		if i > 6 {
			l.Leave(0)
		}
		l.Leave(0)
	}
	if err := g.Update(Limits{Size: 6, Theta: 1}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for l.Enter(epoch) {
		n++
	}
	if n != 6 {
		t.Errorf("a pool of 6 gave out %d places", n)
	}
}

func TestGiveOut(t *testing.T) {
	g := newGate(t, Limits{Size: 20, Held: 1})
	l := g.Loop(0)
	for l.Enter(epoch) {
	}
	before := g.Active()
	l.Hold(epoch, noAddr, 0)
	if v := l.Hold(epoch, noAddr, 0); v != ShedFull {
		t.Fatalf("verdict %d, want ShedFull", v)
	}
	if before == 20 || !g.GiveOut(epoch) {
		t.Fatalf("%d places were given out, and no more can be", before)
	}
	for l.Enter(epoch) {
	}
	if g.Active() != 20 || g.GiveOut(epoch) {
		t.Errorf("%d of 20 places were given out", g.Active())
	}
}

func TestHeldBounds(t *testing.T) {
	g := newGate(t, Limits{Size: 1, Held: 3, HeldBytes: 1000})
	l := g.Loop(0)
	for i, bytes := range []int{100, 700} {
		if v := l.Hold(epoch, noAddr, bytes); v != Held {
			t.Fatalf("request %d: verdict %d", i, v)
		}
	}
	if v := l.Hold(epoch, noAddr, 300); v != ShedFull {
		t.Errorf("1100 bytes: verdict %d", v)
	}
	if l.More(201) || !l.More(200) {
		t.Error("more bytes: the bound is not 1000")
	}
	l.Release(noAddr, 900)
	if s := g.Stats(epoch); s.Held != 1 || s.HeldBytes != 100 {
		t.Errorf("held %d, %d bytes", s.Held, s.HeldBytes)
	}
	g = newGate(t, Limits{Size: 1, Held: -1})
	if v := g.Loop(0).Hold(epoch, noAddr, 0); v != ShedFull {
		t.Errorf("held though none may be: %d", v)
	}
}

// Retry-After is when what is held will have been served: (held+1) * S / N.
func TestRetryAfter(t *testing.T) {
	g := newGate(t, Limits{Size: 10, Theta: 1})
	if d := g.RetryAfter(epoch); d != time.Second {
		t.Errorf("%v before anything was measured, want 1s", d)
	}
	l := g.Loop(0)
	now := serveFor(g, 10, 2*time.Second, 8*time.Second) // 5 per second
	for range 44 {
		if l.Hold(now, noAddr, 0) != Held {
			t.Fatal("not held")
		}
	}
	if d := g.RetryAfter(now); d < 8*time.Second || d > 11*time.Second { // 45 / 5 = 9
		t.Errorf("%v with 44 held and 5 served per second, want about 9s", d)
	}
	for range 400 { // then it hangs
		now = now.Add(250 * time.Millisecond)
		l.Next(now)
	}
	if d := g.RetryAfter(now); d != time.Minute {
		t.Errorf("%v after it hung for 100 s, want the bound of 1m", d)
	}
}

func TestStates(t *testing.T) {
	g := newGate(t, Limits{Size: 2, Held: 1})
	l := g.Loop(0)
	want := func(s State) {
		t.Helper()
		if got := g.Stats(epoch).State; got != s {
			t.Errorf("state %v, want %v", got, s)
		}
	}
	want(Calm)
	l.Enter(epoch)
	want(Calm)
	l.Enter(epoch)
	want(Pacing)
	l.Hold(epoch, noAddr, 0)
	want(Holding)
	l.Shed(epoch)
	want(Shedding)
	if got := g.Stats(epoch.Add(time.Second)).State; got != Holding {
		t.Errorf("a second later: %v, want holding", got)
	}
	for s, name := range map[State]string{Calm: "calm", Pacing: "pacing", Holding: "holding", Shedding: "shedding"} {
		if s.String() != name {
			t.Errorf("%d is %q", s, s)
		}
	}
}

// IPv6 clients have a whole network: its addresses are one client.
func TestShareOfANetwork(t *testing.T) {
	g := newGate(t, Limits{Size: 1, Held: 10})
	l := g.Loop(0)
	n := 0
	for i := range 10 {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)})
		if l.Hold(epoch, a, 0) == Held {
			n++
		}
	}
	if n > 7 {
		t.Errorf("a network got %d of 10", n)
	}
	if l.Hold(epoch, netip.MustParseAddr("2001:db8:1::1"), 0) != Held {
		t.Error("another network got none")
	}
}

// Loops share the gate without locks: no place is given out twice, none is lost.
func TestLoopsAtOnce(t *testing.T) {
	const loops, size = 4, 9
	g, err := New(Options{Start: epoch, Loops: loops, Limits: Limits{Size: size, Held: 5}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range loops {
		wg.Go(func() {
			l, r := g.Loop(i), rand.New(rand.NewPCG(uint64(i), 1))
			client := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			now, mine, held := epoch, 0, 0
			for range 20_000 {
				now = now.Add(time.Duration(r.IntN(300)) * time.Microsecond)
				switch {
				case r.IntN(2) == 0 && l.Enter(now):
					mine++
				case r.IntN(4) == 0 && l.Hold(now, client, 10) == Held:
					held++
				case mine > 0:
					l.Leave(time.Millisecond)
					mine--
				case held > 0:
					l.Release(client, 10)
					held--
				}
				l.Next(now)
				l.Paused(now)
				_ = g.Stats(now)
			}
			for range mine {
				l.Leave(0)
			}
			for range held {
				l.Release(client, 10)
			}
		})
	}
	wg.Wait()
	if s := g.Stats(epoch.Add(time.Hour)); s.Active != 0 || s.Held != 0 || s.HeldBytes != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

func TestNoAllocations(t *testing.T) {
	g := newGate(t, Limits{Size: 20})
	l, now := g.Loop(0), epoch
	client := netip.MustParseAddr("192.0.2.1")
	l.Hold(now, client, 1) // the gate's first one allocates
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		n := 0
		for l.Enter(now) {
			n++
		}
		l.Hold(now, client, 100)
		l.Paused(now)
		l.Next(now)
		l.Release(client, 100)
		_ = g.RetryAfter(now)
		for range n {
			l.Leave(time.Millisecond)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	for name, active := range map[string]int{"calm": 10, "paced": 45} {
		b.Run(name, func(b *testing.B) {
			g := newGate(b, Limits{Size: 50})
			l, now := g.Loop(0), epoch
			l.Hold(now, noAddr, 0)
			for int(g.Active()) < active {
				now = now.Add(l.Next(now))
				l.Enter(now)
			}
			for b.Loop() {
				now = now.Add(10 * time.Microsecond)
				l.Leave(time.Millisecond)
				l.Enter(now)
			}
		})
	}
}

// A client has the same share whether its requests come on one loop, as the
// streams of an HTTP/2 connection do, or on all of them.
func TestFairShareOverLoops(t *testing.T) {
	const loops = 8
	client := netip.MustParseAddr("192.0.2.1")
	for _, on := range []int{1, loops} {
		g, err := New(Options{Start: epoch, Loops: loops, Limits: Limits{Size: 1, Held: 100}})
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for i := range 1000 {
			if g.Loop(i%on).Hold(epoch, client, 1) == Held {
				held++
			}
		}
		if held < 60 || held > 70 {
			t.Errorf("on %d of %d loops one client holds %d of 100, want two thirds", on, loops, held)
		}
		for i := range held {
			g.Loop((i+1)%loops).Release(client, 1) // any loop: the count is the gate's
		}
		if s := g.Stats(epoch); s.Held != 0 || g.shares.Load().count(client) != 0 {
			t.Errorf("%d held, %d of the client, after all were released", s.Held, g.shares.Load().count(client))
		}
	}
}
