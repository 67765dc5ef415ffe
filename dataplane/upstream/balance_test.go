package upstream

import (
	"math"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestSharesFollowTheWeights(t *testing.T) {
	for _, tc := range []struct {
		name      string
		balance   ir.Balance
		tolerance float64 // of the share, absolute
	}{
		{"round robin", ir.BalanceRoundRobin, 0.002},
		{"least request", ir.BalanceLeastRequest, 0.03},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 1, Options{})
			s := spec(ir.Pool{Size: 1 << 20}, tc.balance, "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
			weights := []uint32{7, 2, 1}
			for i := range s.Endpoints {
				s.Endpoints[i].Weight = weights[i]
			}
			r.Update([]*ir.Cluster{s})
			c := r.Cluster(s.Name)
			got := map[string]int{}
			const n = 5000
			for range n {
				x := r.open(c, 0, Try{Fresh: true})
				got[r.loops[0].last().addr.String()]++
				x.Cancel()
			}
			for i, e := range s.Endpoints {
				want := float64(weights[i]) / 10
				if share := float64(got[e.Address]) / n; math.Abs(share-want) > tc.tolerance {
					t.Errorf("%s got %.4f of the requests, want %.4f", e.Address, share, want)
				}
			}
		})
	}
}

func TestLeastRequestLeavesTheBusyOneAlone(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{}, ir.BalanceLeastRequest, "10.0.0.1:80", "10.0.0.2:80")
	slow := c.state.Load().endpoints[0]
	slow.active.Add(100)
	n := 0
	for range 1000 {
		x := r.open(c, 0, Try{Fresh: true})
		if x.Endpoint() == slow {
			n++
		}
		x.Cancel()
	}
	// It is taken only when both draws (and the third) hit it: 1 in 8.
	if n > 200 {
		t.Fatalf("the busy endpoint got %d of 1000 requests", n)
	}
}

func TestAvoidedEndpointsAreNotPickedAgain(t *testing.T) {
	r := newRig(t, 1, Options{})
	c := r.cluster(ir.Pool{}, ir.BalanceLeastRequest, "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
	for range 100 {
		x := r.open(c, 0, Try{})
		first := x.Endpoint()
		x.Cancel()
		x.Avoid(first)
		x.Open(c.Shard(0), Try{})
		second := x.Endpoint()
		x.Cancel()
		x.Avoid(second)
		x.Open(c.Shard(0), Try{})
		if third := x.Endpoint(); first == second || third == first || third == second {
			t.Fatalf("picked %v, %v, %v", first, second, third)
		}
		x.Cancel()
	}
}

// TestAllUnwellShareTheLoad checks that a check which is wrong for all endpoints
// changes nothing for anybody.
func TestAllUnwellShareTheLoad(t *testing.T) {
	for _, b := range []ir.Balance{ir.BalanceLeastRequest, ir.BalanceRoundRobin, ir.BalancePeakEWMA} {
		h := newHealth(t, func(c *ir.Cluster) { c.Balance = b }, one, two, three)
		for _, a := range []string{one, two, three} {
			h.endpoint(a).declare(errUnwell)
		}
		got := h.shares(3000)
		for _, a := range []string{one, two, three} {
			if got[a] < 800 || got[a] > 1200 {
				t.Errorf("balance %v: all are unwell, and requests went to %v", b, got)
				break
			}
		}
	}
}
