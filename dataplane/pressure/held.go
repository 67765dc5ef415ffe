package pressure

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// Verdict is what becomes of a request that found no place.
type Verdict uint8

// The verdicts.
const (
	Held        Verdict = iota // it waits
	ShedFull                   // shed: too many, or too many bytes, are held
	ShedByShare                // shed: its client has its share of what is held
)

// fair is alpha of Choudhury and Hahne's dynamic thresholds: a client may hold at
// most this many times what is still free. One client alone gets two thirds of
// the queue, two get two fifths each; whoever comes new finds room.
const fair = 2

// Hold asks to hold a request that takes so many bytes. client is the address
// that it came from; the zero Addr has no share to keep to. What is held must be
// given back by Release.
//
// When the verdict is to shed, but GiveOut finds a free place, ask again.
func (l *Loop) Hold(now time.Time, client netip.Addr, bytes int) Verdict {
	g := l.gate
	s := g.set.Load()
	n := g.held.Add(1)
	total := g.bytes.Add(int64(bytes))
	verdict := Held
	switch {
	case n > int64(s.Held) || total > s.HeldBytes:
		verdict = ShedFull
	case client.IsValid():
		shares := g.shares.Load()
		if shares == nil {
			g.shares.CompareAndSwap(nil, newShares())
			shares = g.shares.Load()
		}
		// Over all loops: the streams of one HTTP/2 connection are on one of them.
		if own := shares.count(client); own > 0 && own >= fair*(int64(s.Held)-n+1) {
			verdict = ShedByShare
		} else {
			shares.add(client, 1)
		}
	}
	if verdict != Held {
		g.held.Add(-1)
		g.bytes.Add(int64(-bytes))
		return verdict
	}
	if n == 1 {
		g.step(g.since(now), 0) // tokens come from now on
	}
	return Held
}

// More counts further bytes of a held request; false means that they are too
// many, and that they were not counted.
func (l *Loop) More(bytes int) bool {
	g := l.gate
	if g.bytes.Add(int64(bytes)) > g.set.Load().HeldBytes {
		g.bytes.Add(int64(-bytes))
		return false
	}
	return true
}

// Release ends the holding of a request: it was admitted, or it is gone.
func (l *Loop) Release(client netip.Addr, bytes int) {
	g := l.gate
	g.held.Add(-1)
	g.bytes.Add(int64(-bytes))
	if shares := g.shares.Load(); client.IsValid() && shares != nil {
		shares.add(client, -1)
	}
}

// Shed tells that a request is shed: it could not be held, or was for too long.
func (l *Loop) Shed(now time.Time) { l.gate.shedAt.Store(l.gate.since(now)) }

// shares counts the held requests of clients in a fixed space: two rows of
// counters, of which the lower one bounds a client's number from above (a
// count-min sketch). Two clients that meet in both rows share a share; who they
// are can't be foreseen, the hash is seeded.
type shares struct {
	seed maphash.Seed
	rows [2][shareCells]atomic.Int32
}

const shareCells = 128

func newShares() *shares { return &shares{seed: maphash.MakeSeed()} }

// cells returns a client's place in each row. IPv6 clients have a network of 64
// bits at least.
func (s *shares) cells(client netip.Addr) (uint64, uint64) {
	client = client.Unmap()
	if client.Is6() {
		if p, err := client.Prefix(64); err == nil {
			client = p.Addr()
		}
	}
	h := maphash.Comparable(s.seed, client)
	return h % shareCells, h >> 32 % shareCells
}

func (s *shares) count(client netip.Addr) int64 {
	a, b := s.cells(client)
	return int64(min(s.rows[0][a].Load(), s.rows[1][b].Load()))
}

func (s *shares) add(client netip.Addr, n int32) {
	a, b := s.cells(client)
	s.rows[0][a].Add(n)
	s.rows[1][b].Add(n)
}
