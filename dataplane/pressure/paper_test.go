package pressure

import (
	"math"
	"testing"
	"time"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-12 }

func newGate(t testing.TB, l Limits) *Gate {
	t.Helper()
	g, err := New(Options{Start: epoch, Loops: 1, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Eq. (8): 47 of 50 are 0.94.
func TestEquation8(t *testing.T) {
	for _, tc := range []struct {
		active, size int64
		want         float64
	}{{47, 50, 0.94}, {0, 50, 0}, {50, 50, 1}, {17, 20, 0.85}, {1, 1, 1}} {
		if got := Utilisation(tc.active, tc.size); !near(got, tc.want) {
			t.Errorf("U(%d, %d) = %v, want %v", tc.active, tc.size, got, tc.want)
		}
	}
	g := newGate(t, Limits{Size: 50})
	for range 42 {
		g.Loop(0).Enter(epoch)
	}
	if s := g.Stats(epoch); s.State != Calm || !near(s.Utilisation, 0.84) {
		t.Errorf("42 of 50: %v, U %v", s.State, s.Utilisation)
	}
	g.Loop(0).Enter(epoch)
	if s := g.Stats(epoch); s.State != Pacing || !near(s.Utilisation, 0.86) {
		t.Errorf("43 of 50: %v, U %v", s.State, s.Utilisation)
	}
}

// Eq. (9): Lambda_max of the paper's Table 1, 112,400, leaves 5,620 a second at
// U = 0.95, and nothing at 1.
func TestEquation9(t *testing.T) {
	for _, tc := range []struct{ lambda, u, want float64 }{
		{112_400, 0.85, 16_860}, {112_400, 0.95, 5_620}, {112_400, 1, 0}, {2_500, 0.94, 150}, {2_500, 0, 2_500},
	} {
		if got := Rate(tc.lambda, tc.u); !near(got, tc.want) {
			t.Errorf("r(%v, %v) = %v, want %v", tc.lambda, tc.u, got, tc.want)
		}
	}
	// One token per free place and mean service: (N/S)(1-k/N) = (N-k)/S.
	if got := paced(50/0.02, 47, 50); !near(got, 3/0.02) {
		t.Errorf("paced at 47 of 50 and 20 ms: %v, want 150", got)
	}
	// Our own floor: one per free place and second.
	if got := paced(50/100.0, 47, 50); !near(got, 3) {
		t.Errorf("paced at 47 of 50 and 100 s: %v, want 3", got)
	}
	if got := paced(math.Inf(1), 50, 50); got != 0 {
		t.Errorf("paced in a full pool: %v, want 0", got)
	}
}

// serveFor keeps k places busy for a while, each for the service time, so that
// the gate can measure: one in each service/k comes back and goes out again.
func serveFor(g *Gate, k int, service, d time.Duration) time.Time {
	now, l := epoch, g.Loop(0)
	for range k {
		l.Enter(now)
	}
	for step := service / time.Duration(k); now.Sub(epoch) < d; {
		now = now.Add(step)
		l.Leave(service)
		l.Enter(now)
	}
	return now
}

// Eq. (1) and (9) on what was measured: 48 of 50 places at 20 ms are a Lambda_max
// of 2,500 and a rate of 100.
func TestMeasuredRate(t *testing.T) {
	g := newGate(t, Limits{Size: 50})
	l := g.Loop(0)
	now := serveFor(g, 43, 20*time.Millisecond, time.Second)
	l.Hold(now, noAddr, 0) // tokens come while somebody is held
	for range 100 {
		now = now.Add(465 * time.Microsecond)
		l.Leave(20 * time.Millisecond)
		for l.Enter(now) && g.Active() < 48 {
		}
		l.Next(now)
	}
	s := g.Stats(now)
	if math.Abs(s.Capacity-2500) > 200 || math.Abs(s.Service.Seconds()-0.02) > 0.002 {
		t.Errorf("measured %v per second and %v, want 2,500 and 20ms", s.Capacity, s.Service)
	}
	if want := s.Capacity * (1 - float64(s.Active)/50); math.Abs(s.Rate-want) > 60 {
		t.Errorf("rate %v with %d of 50 places, want %v", s.Rate, s.Active, want)
	}

	// The CPU may be the bottleneck.
	g, err := New(Options{Start: epoch, Loops: 1, CPU: func() float64 { return 400 }, Limits: Limits{Size: 50}})
	if err != nil {
		t.Fatal(err)
	}
	serveFor(g, 43, 20*time.Millisecond, time.Second)
	if s := g.Stats(epoch); s.Capacity != 400 {
		t.Errorf("Lambda_max is %v, want 400, of the CPU's stages", s.Capacity)
	}
}

// What is admitted in all above theta is U*Lambda_max that comes back and
// (1-U)*Lambda_max that is new: Lambda_max.
func TestAdmissionIsLambdaMax(t *testing.T) {
	for _, u := range []float64{0.86, 0.9, 0.96, 1} {
		const size, service = 50, 0.02
		capacity := size / service
		active := int64(math.Round(u * size))
		comeBack := float64(active) / service
		if got := comeBack + Rate(capacity, Utilisation(active, size)); !near(got, capacity) {
			t.Errorf("at U = %v %v are admitted per second, want %v", u, got, capacity)
		}
	}
}

// Eq. (10): T_bp is the time from the closing of the gate to the first pause,
// and is taken once for each time that it closed.
func TestEquation10(t *testing.T) {
	g := newGate(t, Limits{Size: 50})
	l := g.Loop(0)
	now := epoch.Add(time.Second)
	for range 42 {
		l.Enter(now)
	}
	if _, ok := l.Paused(now); ok {
		t.Error("a pause of an open gate was measured")
	}
	l.Enter(now) // U is 0.86: the gate closes
	now = now.Add(4200 * time.Microsecond)
	if l.Enter(now) {
		t.Fatal("admitted without a token")
	}
	if d, ok := l.Paused(now); !ok || d != 4200*time.Microsecond {
		t.Errorf("T_bp is %v, %v; want 4.2ms", d, ok)
	}
	if _, ok := l.Paused(now.Add(time.Millisecond)); ok {
		t.Error("the second pause was measured too")
	}
	l.Hold(now, noAddr, 0)
	l.Leave(time.Millisecond) // the one that is held gets the place
	l.Enter(now)
	l.Release(noAddr, 0)
	if _, ok := l.Paused(now.Add(time.Millisecond)); ok {
		t.Error("the gate closed anew though somebody had been held all the time")
	}
	l.Leave(time.Millisecond) // now it is open
	now = now.Add(time.Minute)
	l.Enter(now) // and closes
	if d, ok := l.Paused(now.Add(time.Millisecond)); !ok || d != time.Millisecond {
		t.Errorf("after the gate closed anew, T_bp is %v, %v; want 1ms", d, ok)
	}
}
