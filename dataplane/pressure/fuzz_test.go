package pressure

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// FuzzGate does what loops may do, in any order and at any times.
func FuzzGate(f *testing.F) {
	f.Add(uint16(50), 0.85, []byte("\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\xff\x00\x00"))
	f.Add(uint16(1), 0.5, []byte{0, 0, 2, 0, 2, 7, 1, 3, 9, 200, 0, 2, 6})
	f.Add(uint16(7), 1.0, []byte{0, 16, 32, 48, 64, 80, 96, 112, 2, 2, 2, 4, 4, 250, 5, 1, 1, 1})
	f.Fuzz(gateHolds)
}

// TestGateHolds does the same with sequences that are drawn.
func TestGateHolds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		ops := make([]byte, 20+r.IntN(400))
		for i := range ops {
			ops[i] = byte(r.Uint32())
			if i > 0 && r.IntN(4) == 0 { // runs of one kind fill and empty the pool
				ops[i] = ops[i-1]
			}
		}
		gateHolds(t, uint16(r.Uint32()), []float64{0, 0.01, 0.5, 0.85, 1}[r.IntN(5)], ops)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// gateHolds holds what must always hold: the bounds, and that tokens are never
// created but by the rate.
func gateHolds(t *testing.T, size uint16, theta float64, ops []byte) {
	l := Limits{Size: int(size)%200 + 1, Theta: theta, Held: 5, HeldBytes: 1000}
	g, err := New(Options{Start: epoch, Loops: 2, Limits: l})
	if err != nil {
		return
	}
	now := epoch
	var mine, held [2]int
	for _, op := range ops {
		i := int(op>>3) & 1
		loop, client := g.Loop(i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		before, last := g.tokens, g.last
		given, asking := false, int64(0)
		switch op & 7 {
		case 0:
			if loop.Enter(now) {
				mine[i]++
				asking = 1
				if g.Active() > int64(l.Size) {
					t.Fatalf("%d places of %d were given out", g.Active(), l.Size)
				}
			}
		case 1:
			if mine[i] > 0 {
				loop.Leave(time.Duration(op) * time.Millisecond)
				mine[i]--
			}
		case 2:
			if loop.Hold(now, client, 10) == Held {
				held[i]++
			}
		case 3:
			if held[i] > 0 {
				loop.Release(client, 10)
				held[i]--
			}
		case 4:
			given = g.GiveOut(now)
		case 5:
			l.Size = int(op)%200 + 1
			if err := g.Update(l); err != nil {
				t.Fatal(err)
			}
		case 6:
			now = now.Add(time.Duration(op) * time.Duration(op) * time.Millisecond)
		case 7:
			now = now.Add(time.Duration(op) * 100 * time.Microsecond)
			if d := loop.Next(now); d < minNext || d > maxNext {
				t.Fatalf("Next is %v", d)
			}
			loop.Paused(now)
		}
		s, set := g.Stats(now), g.set.Load()
		if s.Active != int64(mine[0]+mine[1]) || s.Held != int64(held[0]+held[1]) || s.HeldBytes != 10*s.Held || s.Held > 5 {
			t.Fatalf("%d and %d in use, %d and %d held: %+v", mine[0], mine[1], held[0], held[1], s)
		}
		if s.Limit < set.knee || s.Limit > int64(l.Size) {
			t.Fatalf("the limit is %d in a pool of %d", s.Limit, l.Size)
		}
		if !(s.Utilisation >= 0) || s.Utilisation > 1 && s.Active <= int64(l.Size) || !(s.Capacity >= 0) || s.Service < 0 {
			t.Fatalf("%+v", s)
		}
		if !(s.Rate >= 0) || s.Rate > max(s.Capacity, 200) { // at most 200 places are free
			t.Fatalf("the rate is %v of %v", s.Rate, s.Capacity)
		}
		if d := g.RetryAfter(now); d < MinRetryAfter || d > MaxRetryAfter || d%time.Second != 0 {
			t.Fatalf("RetryAfter is %v", d)
		}
		if grown := g.tokens - before; grown > 0 && !given {
			dt := float64(g.last-last) / 1e9
			// Who has just entered was not counted yet.
			if most := paced(g.capacity.load(), s.Active-asking, int64(l.Size)) * dt; grown > most*(1+1e-9)+1e-9 && !math.IsInf(most, 1) {
				t.Fatalf("%v tokens came in %v s, the rate allows %v", grown, dt, most)
			}
		}
		if g.tokens < 0 || g.tokens > float64(set.Size) || math.IsNaN(g.tokens) {
			t.Fatalf("%v tokens", g.tokens)
		}
	}
}
