package upstream

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// TestQueueHolds draws what clients, an upstream and a policy's author may do, on two
// loops: the pool and the queue stay within their bounds, each request has one end at
// most, who is shed is told when to come again, and all places come back.
func TestQueueHolds(t *testing.T) {
	ends := make(map[string]int)
	for seed := range uint64(60) {
		queueHolds(t, rand.New(rand.NewPCG(seed, 21)), ends)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
	for _, end := range []string{"end", "fail " + ReasonPoolFull, "fail " + ReasonPoolShare, "fail " + ReasonPoolTimeout} {
		if ends[end] == 0 {
			t.Errorf("no request came to %q: %v", end, ends)
		}
	}
}

func queueHolds(t *testing.T, d *rand.Rand, seen map[string]int) {
	const loops, most, bytes = 2, 8, 500
	r := newRig(t, loops, Options{Pressure: ir.Pressure{Held: most, HeldBytes: bytes, HoldTime: time.Second}})
	pool := ir.Pool{Size: 1 + d.IntN(20)}
	c := r.cluster(pool, 0, one)
	var all []*caller
	answered := make(map[*fakeTransport]bool)
	peak := int64(pool.Size) // places that may be in use: a pool that shrinks takes none away
	for range 300 {
		l := d.IntN(loops)
		switch d.IntN(10) {
		case 0, 1, 2, 3:
			all = append(all, r.open(c, l, Try{Bytes: d.IntN(200), Client: netip.AddrFrom4([4]byte{10, 0, 0, byte(d.IntN(3))})}))
		case 4, 5, 6: // the upstream takes a connection, and answers or hangs
			for _, tr := range r.loops[l].dialed {
				if s := tr.conn.stream; !tr.closed && s != nil {
					if !answered[tr] {
						tr.conn.OnConnect()
						answered[tr] = true
					}
					if d.IntN(3) > 0 {
						tr.conn.OnRead([]byte(okAnswer))
					}
					break
				}
			}
		case 7: // a client goes
			if len(all) > 0 {
				if x := all[d.IntN(len(all))]; x.Active() {
					x.Cancel()
				}
			}
		case 8:
			pool.Size = 1 + d.IntN(20)
			c = r.cluster(pool, 0, one)
		case 9:
			for _, l := range r.loops {
				l.advance(time.Duration(d.IntN(400)) * time.Millisecond)
			}
		}
		for _, l := range r.loops {
			l.run()
		}
		s := c.Stats()
		held, placed := 0, 0
		for _, x := range all {
			switch {
			case x.Held():
				held++
			case x.Active():
				placed++
			}
		}
		peak = max(int64(pool.Size), min(peak, s.Active))
		if s.Active > peak || s.Active != int64(placed) || s.Held != int64(held) || s.Held > most || s.HeldBytes > bytes {
			t.Fatalf("%d have a place, %d are held; at most %d and %d bytes: %+v", placed, held, most, bytes, s)
		}
	}
	for _, x := range all {
		if x.Active() {
			x.Cancel()
		}
		ends := 0
		for _, e := range x.events {
			if e == "end" || strings.HasPrefix(e, "fail") {
				ends++
				seen[e]++
			}
		}
		if ends > 1 {
			t.Fatalf("a request ended more than once: %q", x.events)
		}
		if f := x.failure; f.Err != nil && f.Err.Status == 503 && f.RetryAfter < time.Second {
			t.Fatalf("shed without a time to come again: %+v", f)
		}
	}
	for _, l := range r.loops {
		l.run()
		l.advance(time.Hour)
	}
	if s := c.Stats(); s.Active != 0 || s.Held != 0 || s.HeldBytes != 0 {
		t.Fatalf("at the end: %+v", s)
	}
}
