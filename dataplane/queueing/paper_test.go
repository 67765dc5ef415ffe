package queueing

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/queueing/simulation"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// value returns v, or not a number when there is an error, which no comparison
// accepts.
func value(v float64, err error) float64 {
	if err != nil {
		return math.NaN()
	}
	return v
}

// TestEquation1: the stage with the lowest capacity bounds the pipeline.
func TestEquation1(t *testing.T) {
	p := Pipeline{{Mu: 100, Servers: 4}, {Mu: 1000, Servers: 1}, {Mu: 35, Servers: 10}, {Mu: 350, Servers: 1}}
	lambda, stage, err := p.Bound()
	if err != nil || lambda != 350 || stage != 2 {
		t.Errorf("Bound = %v, %d, %v; want 350, stage 2", lambda, stage, err)
	}
}

// TestEquation2 is the paper's Table 2: 28,100 requests per second and core.
func TestEquation2(t *testing.T) {
	for _, c := range []struct {
		cores                        int
		lambda, measured, efficiency float64
	}{{2, 56200, 54800, 0.975}, {4, 112400, 112400, 1}, {8, 224800, 198600, 0.883}} {
		got := value(Capacity(28100, c.cores))
		if got != c.lambda || math.Abs(c.measured/got-c.efficiency) > 0.0005 {
			t.Errorf("%d cores: %v, efficiency %.4f", c.cores, got, c.measured/got)
		}
	}
}

func TestEquation3(t *testing.T) {
	for _, c := range []struct {
		name    string
		cpu, io time.Duration
		async   float64
		mu      float64
	}{
		{"thread per request", time.Millisecond, 4 * time.Millisecond, 0, 200}, // 1/(1+4)
		{"event loop", time.Millisecond, 4 * time.Millisecond, 1, 1000},        // 1/1
		{"half", time.Millisecond, 4 * time.Millisecond, 0.5, 1000.0 / 3},      // 1/(1+2)
		{"only waiting", 0, 4 * time.Millisecond, 0, 250},
	} {
		near(t, c.name, value(ServiceRate(c.cpu, c.io, c.async)), c.mu, 1e-12)
	}
}

// TestEquation4 is the load of the paper's Table 1 on its own Eq. (2):
// 23,680 / (4 * 28,100).
func TestEquation4(t *testing.T) {
	near(t, "rho", value(Intensity(23680, 28100, 4)), 0.210676, 1e-5)
	near(t, "rho of an overload", value(Intensity(300, 100, 2)), 1.5, 1e-15)
}

// TestEquations5To7 sets Erlang C and the times beside values worked out by hand
// and from textbooks.
func TestEquations5To7(t *testing.T) {
	for _, c := range []struct {
		name       string
		lambda, mu float64
		servers    int
		wait       float64 // C
		delay      float64 // W_q
		precision  float64
	}{
		// M/M/1: C = rho, W_q = rho/(mu-lambda).
		{"M/M/1", 0.5, 1, 1, 0.5, 1, 1e-14},
		{"M/M/1 at 99 %", 99, 100, 1, 0.99, 0.99, 1e-12},
		// M/M/2: C = 2*rho^2/(1+rho), W_q = rho^2/(mu(1-rho^2)).
		{"M/M/2", 1.5, 1, 2, 9.0 / 14, 9.0 / 7, 1e-14},
		// c = 3, a = 2: a^3/3!/(1-2/3) = 4 over 1+2+2+4: 4/9; W_q = 4/9 / (3-2).
		{"M/M/3", 2, 1, 3, 4.0 / 9, 4.0 / 9, 1e-14},
		// Erlang's tables: 10 servers, 8 erlangs.
		{"10 servers, 8 erlangs", 8, 1, 10, 0.40918, 0.20459, 1e-4},
		{"2 servers, 1 erlang", 1, 1, 2, 1.0 / 3, 1.0 / 3, 1e-14},
		{"nothing arrives", 0, 1, 4, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			near(t, "C", value(WaitProbability(c.lambda, c.mu, c.servers)), c.wait, c.precision)
			near(t, "W_q", value(QueueDelay(c.lambda, c.mu, c.servers)), c.delay, c.precision)
			near(t, "W", value(ResponseTime(c.lambda, c.mu, c.servers)), c.delay+1/c.mu, c.precision)
		})
	}
}

// literal is Eq. (5) as the paper prints it, in 400-bit numbers.
func literal(c int, rho float64) float64 {
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	a := f(0).Mul(f(float64(c)), f(rho))
	term, sum := f(1), f(0) // a^k/k!
	for k := range c {
		sum.Add(sum, term)
		term.Mul(term, a).Quo(term, f(float64(k+1)))
	}
	last := term.Quo(term, f(0).Sub(f(1), f(rho)))
	got, _ := f(0).Quo(last, f(0).Add(sum, last)).Float64()
	return got
}

// TestErlangStable: up to 1,000 servers the recursion is as good as the
// paper's form in exact arithmetic.
func TestErlangStable(t *testing.T) {
	for _, c := range []int{1, 2, 8, 150, 171, 500, 1000} {
		for _, rho := range []float64{1e-9, 0.1, 0.5, 0.85, 0.95, 0.999, 1 - 1e-9} {
			got := value(WaitProbability(rho*float64(c), 1, c))
			want := literal(c, rho*float64(c)/float64(c))
			if want < 1e-280 { // near the smallest float64
				if got > 1e-280 {
					t.Errorf("C(%d, %v) = %v, want %v", c, rho, got, want)
				}
				continue
			}
			near(t, fmt.Sprintf("C(%d, %v)", c, rho), got, want, 1e-11)
		}
	}
}

// TestTable4 is the memory model with the paper's constants (its MB are 10^6
// bytes, and 4 KB are 0.004 MB). Two of its rows, 1,000 and 5,000, leave out the
// c*M_thread = 4 MB of its own Eq. (12).
func TestTable4(t *testing.T) {
	const mb = 1e6
	m := Memory{Base: 256 * mb, Thread: 1 * mb, Request: 4000}
	for _, c := range []struct {
		n           int
		sync, async float64 // Eq. (11) and (12)
		printed     float64 // in Table 4
	}{
		{100, 356, 260.4, 260.4},
		{1000, 1256, 264, 260},
		{5000, 5256, 280, 276},
		{10000, 10256, 300, 300}, // also worked out in 3.5
		{20000, 20256, 340, 340},
	} {
		sync, err1 := m.Sync(c.n)
		async, err2 := m.Async(c.n, 4)
		if err1 != nil || err2 != nil || float64(sync) != c.sync*mb || math.Abs(float64(async)-c.async*mb) > 0.5 {
			t.Errorf("n = %d: %d and %d bytes, want %v and %v MB", c.n, sync, async, c.sync, c.async)
		}
		if missing := math.Abs(c.async - c.printed); missing != 0 && missing != 4 {
			t.Errorf("n = %d: the table differs by %v MB", c.n, missing)
		}
	}
}

// TestErrors: no call answers with a number where the model has none.
func TestErrors(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name       string
		lambda, mu float64
		servers    int
		want       error
	}{
		{"at capacity", 4, 1, 4, ErrUnstable},
		{"above", 5, 1, 4, ErrUnstable},
		{"negative lambda", -1, 1, 4, ErrDomain},
		{"lambda not a number", nan, 1, 4, ErrDomain},
		{"infinite lambda", inf, 1, 4, ErrDomain},
		{"no mu", 1, 0, 4, ErrDomain},
		{"mu not a number", 1, nan, 4, ErrDomain},
		{"infinite mu", 1, inf, 4, ErrDomain},
		{"no servers", 1, 1, 0, ErrDomain},
		{"too many servers", 1, 1, MaxServers + 1, ErrDomain},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := Queue{c.lambda, c.mu, c.servers, 1, 1}
			_, err1 := WaitProbability(c.lambda, c.mu, c.servers)
			_, err2 := QueueDelay(c.lambda, c.mu, c.servers)
			_, err3 := ResponseTime(c.lambda, c.mu, c.servers)
			_, err4 := q.MMc()
			_, err5 := q.GGc()
			for i, err := range []error{err1, err2, err3, err4, err5} {
				if !errors.Is(err, c.want) {
					t.Errorf("call %d: %v, want %v", i, err, c.want)
				}
			}
		})
	}
	for name, err := range map[string]error{
		"negative CV":          second(Queue{1, 1, 4, -1, 1}.GGc()),
		"CV not a number":      second(Queue{1, 1, 4, 1, nan}.AllenCunneen()),
		"negative time":        second(ServiceRate(-1, 0, 0)),
		"no time":              second(ServiceRate(0, time.Second, 1)),
		"async above 1":        second(ServiceRate(1, 1, 1.1)),
		"async not a number":   second(ServiceRate(1, 1, nan)),
		"capacity of nothing":  second(Capacity(1, 0)),
		"negative connections": second(Memory{Request: 1}.Sync(-1)),
		"memory overflow":      second(Memory{Request: math.MaxInt64, Thread: 1}.Async(2, 1)),
		"empty pipeline":       second(Pipeline{}.At(1, Queue.MMc)),
		"empty bound":          second(Pipeline{}.MaxLoad(1, Queue.MMc)),
		"no target":            second(Pipeline{{Mu: 1, Servers: 1}}.MaxLoad(0, Queue.MMc)),
	} {
		if !errors.Is(err, ErrDomain) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestExactCases: where an exact result is known, the approximation is exact.
func TestExactCases(t *testing.T) {
	for _, rho := range []float64{0.1, 0.5, 0.9, 0.99} {
		for _, c := range []int{1, 4, 64} {
			q := Queue{rho * float64(c), 1, c, 1, 1}
			near(t, "M/M/c", value(delay(q.GGc())), value(delay(q.MMc())), 1e-12)
		}
		// Pollaczek-Khinchine: W_q = rho/(1-rho) * (1+cs^2)/2 / mu.
		for _, cs := range []float64{0, 0.5, 1.74, 3} {
			q := Queue{rho, 1, 1, 1, cs}
			near(t, "M/G/1", value(delay(q.GGc())), rho/(1-rho)*(1+cs*cs)/2, 1e-12)
			near(t, "M/G/1, Allen-Cunneen", value(delay(q.AllenCunneen())), rho/(1-rho)*(1+cs*cs)/2, 1e-12)
		}
		if w := value(delay(Queue{rho, 1, 1, 0, 0}.GGc())); w != 0 {
			t.Errorf("D/D/1 at %v waits %v", rho, w)
		}
	}
	if w := value(delay(Queue{0, 1, 1, 2, 2}.GGc())); w != 0 {
		t.Errorf("with no arrivals %v is waited", w)
	}
}

func delay(f Figures, err error) (float64, error) { return f.Delay, err }

// TestSimulation holds the closed forms and the approximation against simulated
// queues. The bounds are those of DESIGN.md, beside the simulation's own error.
func TestSimulation(t *testing.T) {
	for _, c := range []struct {
		name   string
		ca, cs float64
		long   func(mean, cv float64) simulation.Dist
		within float64
	}{
		{"M/M/c", 1, 1, simulation.WithCV, 0.02},
		{"M/D/c", 1, 0, simulation.WithCV, 0.04},
		{"M/E4/c", 1, 0.5, simulation.WithCV, 0.04},
		{"M/G/c, log-normal 1.74", 1, 1.74, simulation.WithCV, 0.12},
		{"M/G/c, hyperexponential 1.74", 1, 1.74, simulation.Hyperexponential, 0.12},
		{"the paper's 6.1", 1.18, 1.74, simulation.WithCV, 0.12},
	} {
		for _, servers := range []int{1, 4, 16} {
			for _, rho := range []float64{0.5, 0.8, 0.9} {
				lambda := rho * float64(servers)
				arrivals := simulation.WithCV(1/lambda, c.ca)
				if c.ca > 1 {
					arrivals = simulation.Hyperexponential(1/lambda, c.ca)
				}
				r, err := simulation.Run(simulation.Config{
					Arrivals: arrivals, Services: c.long(1, c.cs), Servers: servers, Customers: 60_000, WarmUp: 6000, Seed: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Waited*60_000 < 2000 {
					continue // too few have waited to say anything
				}
				got := value(delay(Queue{lambda, 1, servers, c.ca, c.cs}.GGc()))
				if d := math.Abs(got - r.Delay); !(d <= c.within*r.Delay+1.5*r.DelayError) {
					t.Errorf("%s, c = %d, rho = %v: W_q %.4f, simulated %.4f +- %.4f", c.name, servers, rho, got, r.Delay, r.DelayError)
				}
				if c.cs == 1 && c.ca == 1 {
					got := value(WaitProbability(lambda, 1, servers))
					if !(math.Abs(got-r.Waited) <= 0.02) {
						t.Errorf("C(%d, %v) = %.4f, simulated %.4f", servers, rho, got, r.Waited)
					}
				}
			}
		}
	}
}
