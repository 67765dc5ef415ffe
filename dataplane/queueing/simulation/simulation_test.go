package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDistributions: each has the mean and the CV that it promises.
func TestDistributions(t *testing.T) {
	for _, c := range []struct {
		name     string
		d        Dist
		mean, cv float64
	}{
		{"constant", Constant(3), 3, 0},
		{"exponential", Exponential(3), 3, 1},
		{"Erlang", Erlang(3, 4), 3, 0.5},
		{"hyperexponential", Hyperexponential(3, 1.74), 3, 1.74},
		{"log-normal", Lognormal(3, 1.74), 3, 1.74},
		{"CV 0", WithCV(3, 0), 3, 0},
		{"CV 0.02", WithCV(3, 0.02), 3, 0.02},
		{"CV 0.3", WithCV(3, 0.3), 3, 0.3},
		{"CV 0.8", WithCV(3, 0.8), 3, 0.8},
		{"CV 1", WithCV(3, 1), 3, 1},
		{"CV 1.18", WithCV(3, 1.18), 3, 1.18},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			const n = 200_000
			var sum, square float64
			for range n {
				x := c.d(r)
				if x < 0 {
					t.Fatalf("drew %v", x)
				}
				sum += x
				square += x * x
			}
			mean := sum / n
			cv := math.Sqrt(max(square/n-mean*mean, 0)) / mean
			if math.Abs(mean-c.mean) > 0.02*c.mean || math.Abs(cv-c.cv) > 0.05*c.cv+1e-6 {
				t.Errorf("mean %.4f and CV %.4f, want %v and %v", mean, cv, c.mean, c.cv)
			}
		})
	}
}

// TestByHand: constant arrivals and services, so that every time is known.
func TestByHand(t *testing.T) {
	// Two servers, services of 3, an arrival each second: the n-th customer takes
	// the server that ended at 3*floor(n/2); it waits about n/2.
	r, err := Run(Config{Arrivals: Constant(1), Services: Constant(3), Servers: 2, Customers: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want, waited := 0.0, 0.0
	times := []float64{}
	for n := range 20 {
		// Server n%2 is free at 1 + n%2 + 3*floor(n/2), the customer comes at n+1.
		w := float64(1+n%2+3*(n/2)) - float64(n+1)
		want += w / 20
		times = append(times, w+3)
		if w > 0 {
			waited++
		}
	}
	slices.Sort(times)
	if math.Abs(r.Delay-want) > 1e-12 || math.Abs(r.Time-want-3) > 1e-12 || r.Waited != waited/20 || r.P50 != times[10] || r.P99 != times[19] {
		t.Errorf("%+v, want a delay of %v, %v waited", r, want, waited/20)
	}
}

// TestNaive holds the heap against a search through all servers.
func TestNaive(t *testing.T) {
	const servers, customers = 7, 5000
	c := Config{Arrivals: Exponential(1), Services: Exponential(6), Servers: servers, Customers: customers, Seed: 9}
	got, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	a, s := rand.New(rand.NewPCG(9, 1)), rand.New(rand.NewPCG(9, 2))
	var free [servers]float64
	var now, delay float64
	for range customers {
		now += a.ExpFloat64()
		first := slices.Index(free[:], slices.Min(free[:]))
		start := max(now, free[first])
		delay += (start - now) / customers
		free[first] = start + 6*s.ExpFloat64()
	}
	if math.Abs(got.Delay-delay) > 1e-9 || got.Delay == 0 {
		t.Errorf("delay %v, want %v", got.Delay, delay)
	}
}

// TestInterval: the 95 % interval of M/M/1 at 80 % holds the true delay of 4 in
// nearly all runs, and the same seed gives the same run.
func TestInterval(t *testing.T) {
	held := 0
	var first Result
	for seed := range 20 {
		c := Config{Arrivals: Exponential(1.25), Services: Exponential(1), Servers: 1, Customers: 40_000, WarmUp: 2000, Seed: uint64(seed)}
		r, err := Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.Delay-4) <= r.DelayError {
			held++
		}
		if seed == 0 {
			first = r
			if again, _ := Run(c); again != r {
				t.Errorf("the same seed gave %+v and %+v", r, again)
			}
		} else if r == first {
			t.Error("another seed gave the same run")
		}
	}
	if held < 16 {
		t.Errorf("%d of 20 intervals hold the true delay", held)
	}
}

func TestConfig(t *testing.T) {
	ok := Config{Arrivals: Constant(1), Services: Constant(1), Servers: 1, Customers: 20}
	if _, err := Run(ok); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no arrivals":   func(c *Config) { c.Arrivals = nil },
		"no services":   func(c *Config) { c.Services = nil },
		"no servers":    func(c *Config) { c.Servers = 0 },
		"few customers": func(c *Config) { c.Customers = 19 },
		"warm-up":       func(c *Config) { c.WarmUp = -1 },
	} {
		c := ok
		spoil(&c)
		if _, err := Run(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
