package pressure

import (
	"math"
	"time"
)

const (
	// patience bounds how long a free place is withheld, in the mean: where
	// requests keep their places for long (event streams, slow reports), Eq. (9)
	// alone would keep free places from requests for as long.
	patience = 1.0 // seconds
	// minNext and maxNext bound the time between two looks at the bucket.
	minNext = time.Millisecond
	maxNext = 250 * time.Millisecond
)

// Rate returns r_bp, the tokens per second at utilisation u, with lambdaMax in
// requests per second. Source: paper, Eq. (9).
func Rate(lambdaMax, u float64) float64 {
	return max(lambdaMax*(1-u), 0)
}

// Utilisation returns U_pool. Source: paper, Eq. (8).
func Utilisation(active, size int64) float64 {
	return float64(max(active, 0)) / float64(max(size, 1))
}

// paced is the rate of Eq. (9), but at least one token per free place and
// patience. It is infinite where the capacity is, and 0 in a full pool.
func paced(capacity float64, active, size int64) float64 {
	free := float64(size - active)
	if free <= 0 {
		return 0
	}
	return max(Rate(capacity, Utilisation(active, size)), free/patience)
}

// bucket holds the tokens of a pool. A token is the right to use one place above
// theta. It is spent by the request that takes the place and comes back with the
// place, so that a pool whose use does not grow needs no new ones; the rate of
// Eq. (9) bounds the growth. What is admitted in all above theta is U*Lambda_max
// that comes back and (1-U)*Lambda_max that is new: Lambda_max.
type bucket struct {
	tokens  float64 // those in use are counted
	pressed bool    // requests were held at the last step
}

// step lets dt seconds pass. Tokens come while requests are held; while none is,
// those that are not in use fade.
func (b *bucket) step(dt, rate, service float64, active, held int64, s *settings) {
	room := float64(int64(s.Size) - s.knee)
	b.tokens = min(b.tokens, room)
	switch {
	case b.pressed && held > 0:
		if dt > 0 && rate > 0 { // an infinite rate times nothing is no number
			b.tokens += rate * dt
		}
	default:
		// As long as the pool's use goes up and down on its own, its tokens stay.
		used := min(max(float64(active-s.knee), 0), room)
		if b.tokens > used {
			b.tokens = used + (b.tokens-used)*math.Exp2(-dt/(patience+8*service))
		}
	}
	b.tokens = min(b.tokens, room)
	b.pressed = held > 0
}

// next returns when the next whole token is there.
func (b *bucket) next(rate float64) time.Duration {
	missing := 1 - (b.tokens - math.Floor(b.tokens))
	if rate <= 0 || missing/rate > maxNext.Seconds() {
		return maxNext
	}
	return max(time.Duration(missing/rate*1e9), minNext)
}
