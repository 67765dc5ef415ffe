package upstream

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

func hashed(c *ir.Cluster) { c.Balance = ir.BalanceConsistentHash }

// owners returns where each of n keys goes.
func (h *health) owners(n int) []string {
	out := make([]string, n)
	for i := range out {
		key := Key(binary.BigEndian.AppendUint32(nil, uint32(i)))
		x := h.open(h.cluster, 0, Try{Fresh: true, Key: key, Keyed: true})
		out[i] = x.Endpoint().String()
		x.Cancel()
	}
	return out
}

func moved(a, b []string) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

const keys = 4000

func TestConsistentHash(t *testing.T) {
	addresses := []string{one, two, three, "10.0.0.4:80"}
	h := newHealth(t, hashed, addresses...)
	before := h.owners(keys)
	if n := moved(before, h.owners(keys)); n != 0 {
		t.Fatalf("%d keys moved by themselves", n)
	}
	count := map[string]int{}
	for _, a := range before {
		count[a]++
	}
	for _, a := range addresses {
		if share := float64(count[a]) / keys; math.Abs(share-0.25) > 0.03 {
			t.Errorf("%s has %.3f of the keys, want 0.25", a, share)
		}
	}
	// Only the keys of an endpoint that goes move, and they come back with it.
	h.update(hashed, one, two, "10.0.0.4:80")
	without := h.owners(keys)
	if n := moved(before, without); n != count[three] {
		t.Errorf("%d keys moved when an endpoint with %d went", n, count[three])
	}
	h.update(hashed, addresses...)
	if n := moved(before, h.owners(keys)); n != 0 {
		t.Errorf("%d keys did not come back", n)
	}
	// The same when it is ejected.
	h.fail(three, DefaultEjectionFailures)
	if n := moved(without, h.owners(keys)); n != 0 {
		t.Errorf("%d keys are elsewhere than with the endpoint removed", n)
	}
	// A request that one endpoint has failed goes to another one.
	key := Key([]byte("k"))
	x := h.open(h.cluster, 0, Try{Fresh: true, Key: key, Keyed: true})
	first := x.Endpoint()
	x.Cancel()
	x.Avoid(first)
	x.Open(h.cluster.Shard(0), Try{Fresh: true, Key: key, Keyed: true})
	if x.Endpoint() == first {
		t.Error("the endpoint to avoid was taken again")
	}
}

func TestConsistentHashFollowsTheWeights(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) {
		hashed(c)
		for i, w := range []uint32{7, 2, 1} {
			c.Endpoints[i].Weight = w
		}
	}, one, two, three)
	count := map[string]int{}
	for _, a := range h.owners(keys) {
		count[a]++
	}
	for a, want := range map[string]float64{one: 0.7, two: 0.2, three: 0.1} {
		if share := float64(count[a]) / keys; math.Abs(share-want) > 0.03 {
			t.Errorf("%s has %.3f of the keys, want %.1f", a, share, want)
		}
	}
}

func TestConsistentHashWithoutAKey(t *testing.T) {
	h := newHealth(t, hashed, one, two)
	if got := h.shares(1000); got[one] < 300 || got[two] < 300 {
		t.Errorf("requests without a key went to %v", got)
	}
}

// TestKey pins the hash: it must not change between versions, or an upgrade would
// move all keys.
func TestKey(t *testing.T) {
	for text, want := range map[string]uint64{"": 0xf52a15e9a9b5e89b, "203.0.113.7": 0x12ba66e1b50a1879} {
		if got := Key([]byte(text)); got != want {
			t.Errorf("Key(%q) = %#x, want %#x", text, got, want)
		}
	}
	seen := map[uint64]bool{}
	for i := range 10000 {
		seen[Key(fmt.Append(nil, "user-", i))] = true
	}
	if len(seen) != 10000 {
		t.Errorf("%d different keys of 10000", len(seen))
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		for name, balance := range map[string]ir.Balance{
			"round robin": ir.BalanceRoundRobin, "least request": ir.BalanceLeastRequest,
			"peak EWMA": ir.BalancePeakEWMA, "consistent hash": ir.BalanceConsistentHash,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				st := &clusterState{ir: &ir.Cluster{Balance: balance}, equal: true}
				c := &Cluster{}
				for i := range n {
					st.endpoints = append(st.endpoints, &Endpoint{cluster: c})
					st.cumulative = append(st.cumulative, uint64(i+1))
					st.seeds = append(st.seeds, Key(fmt.Append(nil, i)))
				}
				sh := newBalancer()
				b.ReportAllocs()
				for i := range b.N {
					sh.pick(st, choice{key: uint64(i), keyed: true})
				}
			})
		}
	}
}
