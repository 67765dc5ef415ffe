package simulation

import (
	"math"
	"math/rand/v2"
)

// Dist draws times, in seconds.
type Dist func(*rand.Rand) float64

// Exponential has the given mean and a CV of 1.
func Exponential(mean float64) Dist {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

// Lognormal has the given mean and CV: the long tail of response times.
func Lognormal(mean, cv float64) Dist {
	v := math.Log1p(cv * cv)
	mu, sigma := math.Log(mean)-v/2, math.Sqrt(v)
	return func(r *rand.Rand) float64 { return math.Exp(mu + sigma*r.NormFloat64()) }
}

// Hyperexponential mixes two exponentials, one short, one long, of which each
// takes half of the time ("balanced means"). Its CV is at least 1.
func Hyperexponential(mean, cv float64) Dist {
	c2 := max(cv*cv, 1)
	p := (1 + math.Sqrt((c2-1)/(c2+1))) / 2
	return func(r *rand.Rand) float64 {
		if r.Float64() < p {
			return mean / (2 * p) * r.ExpFloat64()
		}
		return mean / (2 * (1 - p)) * r.ExpFloat64()
	}
}

// Erlang is the sum of k exponentials: its CV is 1/sqrt(k).
func Erlang(mean float64, k int) Dist {
	return func(r *rand.Rand) float64 {
		sum := 0.0
		for range k {
			sum += r.ExpFloat64()
		}
		return mean * sum / float64(k)
	}
}

// Constant always takes the same time.
func Constant(mean float64) Dist {
	return func(*rand.Rand) float64 { return mean }
}

// WithCV returns a usual distribution of the given mean and CV: constant for 0,
// a mixture of two Erlangs below 1, exponential for 1, log-normal above.
func WithCV(mean, cv float64) Dist {
	switch {
	case cv <= 0:
		return Constant(mean)
	case cv == 1:
		return Exponential(mean)
	case cv > 1:
		return Lognormal(mean, cv)
	}
	// Tijms: Erlang(k-1) with chance p, else Erlang(k), of the same rate.
	c2 := cv * cv
	k := math.Ceil(1 / c2)
	if k > 200 {
		return Lognormal(mean, cv) // as narrow as this, the shape hardly matters
	}
	p := (k*c2 - math.Sqrt(k*(1+c2)-k*k*c2)) / (1 + c2)
	phase := mean / (k - p)
	return func(r *rand.Rand) float64 {
		n := k
		if r.Float64() < p {
			n--
		}
		sum := 0.0
		for range int(n) {
			sum += r.ExpFloat64()
		}
		return phase * sum
	}
}
