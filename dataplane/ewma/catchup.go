package ewma

// The catch-up's constants; DESIGN.md says where they come from.
const (
	// A change is when answers exceed slower times the estimate by a sum of
	// threshold estimates.
	slower    = 2.0
	threshold = 2.5
	// After a change the old estimate is worth this many answers.
	priorWeight = 0.5
	// No cycle moves the estimate by more than this part of the error.
	maxGain = 2.0 / 3
)

// catchUp raises the gain of Eq. (13) after the upstream has become slower. It
// sees the change by Page's cumulative sum test, or by an expired deadline; from
// then on the gain is that of the mean of all answers since, which falls about
// as 1/2, 1/3, 1/4 ... until it meets the gain of Eq. (13).
type catchUp struct {
	weight float64 // answers that the estimate is worth; 0: there was none yet
	score  float64 // the cumulative sum
}

// gain returns the gain for n answers whose mean is ratio estimates, given that
// of Eq. (13), and whether a change was seen. Freshness, in [0,1], is the worth
// of what was learned.
func (c *catchUp) gain(plain, n, ratio, freshness float64, expired bool) (gain float64, changed bool) {
	if c.weight == 0 { // as a first round-trip time in TCP (RFC 6298, 2.2)
		c.weight = n
		return 1, false
	}
	c.weight *= freshness
	c.score = max(0, c.score*freshness+ratio-slower)
	if expired || c.score >= threshold {
		c.score = 0
		c.weight = min(c.weight, priorWeight)
		changed = true
	}
	gain = min(max(plain, n/(c.weight+n)), maxGain)
	// Beyond this a longer memory would never be used.
	c.weight = min(c.weight+n, 1e6)
	return gain, changed
}
