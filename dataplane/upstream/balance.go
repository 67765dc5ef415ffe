package upstream

import (
	"math/bits"
	"math/rand/v2"
	"sort"

	"github.com/headgate/headgate/dataplane/ir"
)

// balancer picks endpoints for one shard.
type balancer struct {
	turn uint64 // position of the round robin, a Weyl sequence
	rand *rand.PCG
}

// weyl is 2^64 divided by the golden ratio. Multiples of it, as fractions of
// 2^64, are spread as evenly over [0,1) as a sequence can be, so that any run of
// picks is close to the exact shares and never comes in bursts.
const weyl = 0x9E3779B97F4A7C15

// pick returns an endpoint of st that is not in avoid, or any endpoint when all
// are. st has at least one endpoint that takes requests.
func (b *balancer) pick(st *clusterState, avoid []*Endpoint) *Endpoint {
	n := len(st.cumulative)
	if n == 1 {
		return st.endpoints[0]
	}
	e := b.draw(st)
	for tries := 0; tries < 2*n && contains(avoid, e); tries++ {
		b.turn += weyl
		e = st.at(b.turn)
	}
	return e
}

func (b *balancer) draw(st *clusterState) *Endpoint {
	if st.ir.Balance == ir.BalanceRoundRobin {
		b.turn += weyl
		return st.at(b.turn)
	}
	// Power of two choices (Mitzenmacher): the less busy one of two draws by
	// weight, busy in proportion to its weight being implied by the draw.
	x, y := st.at(b.rand.Uint64()), st.at(b.rand.Uint64())
	if x == y {
		y = st.at(b.rand.Uint64())
	}
	if y.active.Load() < x.active.Load() {
		return y
	}
	return x
}

// at returns the endpoint whose share of [0,1) holds the fraction x/2^64.
func (st *clusterState) at(x uint64) *Endpoint {
	n := len(st.cumulative)
	if st.equal {
		hi, _ := bits.Mul64(x, uint64(n))
		return st.endpoints[hi]
	}
	hi, _ := bits.Mul64(x, st.cumulative[n-1])
	return st.endpoints[sort.Search(n, func(i int) bool { return st.cumulative[i] > hi })]
}

func contains(list []*Endpoint, e *Endpoint) bool {
	for _, x := range list {
		if x == e {
			return true
		}
	}
	return false
}
