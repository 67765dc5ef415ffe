package upstream

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// balancer picks endpoints for one shard.
type balancer struct {
	turn uint64 // position of the round robin, a Weyl sequence
	rand rand.PCG
}

// newBalancer begins at random, so that loops don't go in step.
func newBalancer() balancer {
	return balancer{turn: rand.Uint64(), rand: *rand.NewPCG(rand.Uint64(), rand.Uint64())}
}

// weyl is 2^64 divided by the golden ratio. Multiples of it, as fractions of
// 2^64, are spread as evenly over [0,1) as a sequence can be, so that any run of
// picks is close to the exact shares and never comes in bursts.
const weyl = 0x9E3779B97F4A7C15

// choice is what one pick goes by.
type choice struct {
	now   time.Time
	avoid []*Endpoint // that failed this request
	key   uint64      // of a consistent hash
	keyed bool
	// special: some endpoint of the cluster does not get its full share.
	special bool
}

// pick returns an endpoint of st, which has at least one that takes requests. If
// it can it leaves out those to avoid and those that are ejected or unwell; when
// no other is left, it takes these.
func (b *balancer) pick(st *clusterState, c choice) *Endpoint {
	if len(st.cumulative) == 1 {
		if c.special {
			st.endpoints[0].available(c.now) // its ejection may be over
		}
		return st.endpoints[0]
	}
	switch st.ir.Balance {
	case ir.BalanceRoundRobin:
		b.turn += weyl
		return b.accept(st, &c, st.at(b.turn))
	case ir.BalanceConsistentHash:
		if c.keyed {
			return st.owner(&c)
		}
	}
	// Power of two choices (Mitzenmacher): the better one of two draws by weight,
	// busy in proportion to its weight being implied by the draw.
	x, y := b.draw(st, &c), b.draw(st, &c)
	if x == y {
		y = b.draw(st, &c)
	}
	if st.ir.Balance == ir.BalancePeakEWMA {
		if y.cost() < x.cost() {
			return y
		}
		return x
	}
	if y.active.Load() < x.active.Load() {
		return y
	}
	return x
}

func (b *balancer) draw(st *clusterState, c *choice) *Endpoint {
	return b.accept(st, c, st.at(b.rand.Uint64()))
}

// accept returns e, or when it won't do one that will: others in turn, in
// proportion to their weights, then any.
func (b *balancer) accept(st *clusterState, c *choice, e *Endpoint) *Endpoint {
	if len(c.avoid) == 0 && !c.special {
		return e
	}
	turn := b.turn
	var out *Endpoint // the first that did not do, but has not failed this request
	for range 2 * len(st.cumulative) {
		if c.fit(e) && b.due(st, c, e) {
			return e
		}
		if out == nil && !contains(c.avoid, e) {
			out = e
		}
		b.turn += weyl
		e = st.at(b.turn)
	}
	takers := st.endpoints[:len(st.cumulative)]
	for _, x := range takers {
		if c.fit(x) {
			return x
		}
	}
	// All of them are out: an ejected one may have come to its senses, one that
	// has just failed this request has not. They share the load as if none was.
	b.turn = turn
	if out != nil {
		return out
	}
	for _, x := range takers {
		if !contains(c.avoid, x) {
			return x
		}
	}
	return e
}

// fit tells that e is neither to avoid nor out.
func (c *choice) fit(e *Endpoint) bool {
	return !contains(c.avoid, e) && (!c.special || e.available(c.now))
}

// due tells whether e takes this request, for one that starts slowly by chance.
func (b *balancer) due(st *clusterState, c *choice, e *Endpoint) bool {
	if !c.special {
		return true
	}
	share := e.share(c.now, st.ir.SlowStart)
	return share >= 1 || float64(b.rand.Uint64())/math.MaxUint64 < share
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

// owner returns the endpoint that a key belongs to: the one with the highest
// score, which depends on the key and the endpoint alone (rendezvous hashing,
// Thaler and Ravishankar). So a key moves only when its own endpoint goes, or when
// a new one outbids it. With weights the score is w/-ln(u), which gives each
// endpoint its share exactly (Schindelhauer and Schomaker).
func (st *clusterState) owner(c *choice) *Endpoint {
	best := st.bid(c, false)
	if (len(c.avoid) == 0 && !c.special) || c.fit(st.endpoints[best]) {
		return st.endpoints[best]
	}
	if fit := st.bid(c, true); fit >= 0 {
		best = fit
	}
	return st.endpoints[best]
}

// bid returns the index of the endpoint with the highest score for the key, of
// all or of those that fit; -1 when none does.
func (st *clusterState) bid(c *choice, fit bool) int {
	best, high := -1, uint64(0)
	for i, seed := range st.seeds {
		score := mix(c.key ^ seed)
		if !st.equal {
			u := (float64(score>>11) + 0.5) / (1 << 53)
			// Positive floats are in the order of their bits.
			score = math.Float64bits(float64(st.weight(i)) / -math.Log(u))
		}
		if (best < 0 || score > high) && (!fit || c.fit(st.endpoints[i])) {
			best, high = i, score
		}
	}
	return best
}

// weight returns the weight of an endpoint that takes requests.
func (st *clusterState) weight(i int) uint64 {
	if i == 0 {
		return st.cumulative[0]
	}
	return st.cumulative[i] - st.cumulative[i-1]
}

// Key returns the number that stands for a text in a consistent hash. It is the
// same in every process, on every node (FNV-1a).
func Key(text []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range text {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return mix(h)
}

// mix spreads the bits of x (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func contains(list []*Endpoint, e *Endpoint) bool {
	for _, x := range list {
		if x == e {
			return true
		}
	}
	return false
}
