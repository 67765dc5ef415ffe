package queueing

import (
	"math"
	"testing"
)

func TestPipelineAt(t *testing.T) {
	// Two M/M/1 in series: 1/(10-5) + 1/(20-5).
	p := Pipeline{{Mu: 10, Servers: 1}, {Mu: 20, Servers: 1}}
	near(t, "W", value(p.At(5, Queue.MMc)), 1.0/5+1.0/15, 1e-12)
	near(t, "W, idle", value(p.At(0, Queue.MMc)), 1.0/10+1.0/20, 1e-12)
}

func TestMaxLoad(t *testing.T) {
	p := Pipeline{{Mu: 10, Servers: 1, ArrivalCV: 1, ServiceCV: 1}}
	// W = 1/(mu-lambda): half a second at mu - 2.
	near(t, "load", value(p.MaxLoad(0.5, Queue.MMc)), 8, 1e-9)
	near(t, "load, by GGc", value(p.MaxLoad(0.5, Queue.GGc)), 8, 1e-9)
	if got := value(p.MaxLoad(0.05, Queue.MMc)); got != 0 {
		t.Errorf("the service alone takes longer, yet the load is %v", got)
	}
	if got := value(p.MaxLoad(1e9, Queue.MMc)); !(got > 9.999 && got < 10) {
		t.Errorf("load %v for an endless target, want just below 10", got)
	}
	// What it returns keeps the target, what is a little more does not.
	p = Pipeline{{Mu: 1000, Servers: 4, ArrivalCV: 1.18, ServiceCV: 1.74}, {Mu: 50, Servers: 64, ArrivalCV: 1, ServiceCV: 2}}
	got := value(p.MaxLoad(0.03, Queue.GGc))
	if below, above := value(p.At(got, Queue.GGc)), value(p.At(got*1.001, Queue.GGc)); below > 0.03 || above <= 0.03 {
		t.Errorf("W is %v at the load, %v above", below, above)
	}
}

func TestKnee(t *testing.T) {
	// M/M/1: lambda*(mu-lambda) is greatest at half of mu.
	near(t, "knee of M/M/1", value(Pipeline{{Mu: 10, Servers: 1}}.Knee(Queue.MMc)), 5, 1e-6)
	// More servers put it off; M/M/2: W = 1/(mu(1-rho^2)), rho*(1-rho^2) is greatest
	// at 1/sqrt(3).
	near(t, "knee of M/M/2", value(Pipeline{{Mu: 10, Servers: 2}}.Knee(Queue.MMc)), 20/math.Sqrt(3), 1e-6)
}

// TestShape: for any station the delay grows with load and with either CV, and
// is a number.
func TestShape(t *testing.T) {
	cvs := []float64{0, 0.3, 1, 1.5, 4}
	for _, c := range []int{1, 2, 7, 100, 1000} {
		for _, ca := range cvs {
			for _, cs := range cvs {
				last := 0.0
				for _, rho := range []float64{0.01, 0.2, 0.5, 0.8, 0.95, 0.999} {
					w := value(delay(Queue{rho * float64(c), 1, c, ca, cs}.GGc()))
					if math.IsNaN(w) || math.IsInf(w, 0) || w < last {
						t.Errorf("c %d, ca %v, cs %v, rho %v: %v after %v", c, ca, cs, rho, w, last)
					}
					last = w
				}
			}
		}
	}
}

func BenchmarkGGc(b *testing.B) {
	q := Queue{900, 1, 1000, 1.18, 1.74}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.GGc(); err != nil {
			b.Fatal(err)
		}
	}
}
