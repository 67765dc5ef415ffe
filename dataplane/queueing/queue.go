package queueing

import (
	"fmt"
	"math"
)

// Queue is a stage as a queue in front of equal servers.
type Queue struct {
	Lambda  float64 // arrivals per second
	Mu      float64 // services per second and server
	Servers int
	// ArrivalCV and ServiceCV are the coefficients of variation (standard
	// deviation over mean) of the times between arrivals and of the services: 0 is
	// clockwork, 1 Markovian (M/M/c), the paper measured 1.18 and 1.74 (6.1).
	ArrivalCV, ServiceCV float64
}

// Figures are what a model says of a Queue. Times are means, in seconds.
type Figures struct {
	Rho   float64 // traffic intensity, Eq. (4)
	Delay float64 // W_q: waiting before the service
	Time  float64 // W: waiting and service
}

// MMc returns the figures of an M/M/c queue, whatever the CVs (Eq. 4-7).
func (q Queue) MMc() (Figures, error) {
	rho, err := stable(q.Lambda, q.Mu, q.Servers)
	if err != nil {
		return Figures{}, err
	}
	wq := erlangC(q.Servers, rho) / (float64(q.Servers) * q.Mu * (1 - rho))
	return Figures{Rho: rho, Delay: wq, Time: wq + 1/q.Mu}, nil
}

// AllenCunneen returns the figures by Allen and Cunneen's approximation: the
// delay of M/M/c times (ca^2 + cs^2) / 2. It is exact for M/M/c and, with
// Poisson arrivals, for one server (Pollaczek-Khinchine).
func (q Queue) AllenCunneen() (Figures, error) {
	return q.scaled(func(float64, float64, float64) float64 { return 1 })
}

// GGc returns the figures for any CVs: Allen and Cunneen's approximation, with
// Kimura's correction for more than one server (requests pass a long one) and
// that of Kraemer and Langenbach-Belz for arrivals that are more even than
// Poisson's. It is the one to use; DESIGN.md has its errors.
func (q Queue) GGc() (Figures, error) { return q.scaled(q.correction) }

// scaled returns M/M/c with its delay times factor(rho, ca2, cs2) and the mean
// of the squared CVs.
func (q Queue) scaled(factor func(rho, ca2, cs2 float64) float64) (Figures, error) {
	f, err := q.MMc()
	if err != nil {
		return f, err
	}
	if !(q.ArrivalCV >= 0 && q.ArrivalCV < 1e6) || !(q.ServiceCV >= 0 && q.ServiceCV < 1e6) {
		return Figures{}, fmt.Errorf("%w: CV of arrivals %v, of services %v", ErrDomain, q.ArrivalCV, q.ServiceCV)
	}
	ca2, cs2 := q.ArrivalCV*q.ArrivalCV, q.ServiceCV*q.ServiceCV
	if ca2+cs2 == 0 || f.Rho == 0 {
		f.Delay = 0 // clockwork below capacity never waits
	} else {
		f.Delay *= factor(f.Rho, ca2, cs2) * (ca2 + cs2) / 2
	}
	f.Time = f.Delay + 1/q.Mu
	return f, nil
}

func (q Queue) correction(rho, ca2, cs2 float64) float64 {
	c := float64(q.Servers)
	// W_q(M/D/c) = (1+gamma)/2 * W_q(M/M/c): Cosmetatos 1975; the bound is Whitt's.
	gamma := min(0.24, (1-rho)*(c-1)*(math.Sqrt(4+5*c)-2)/(16*c*rho))
	// Kimura 1986: the harmonic mean of W_q(M/D/c) and W_q(M/M/c), weighted by the
	// CV of the services.
	factor := (1 + gamma) / (1 + gamma*cs2)
	if ca2 < 1 { // Kraemer and Langenbach-Belz 1976
		factor *= math.Exp(-2 * (1 - rho) * (1 - ca2) * (1 - ca2) / (3 * rho * (ca2 + cs2)))
	}
	return factor
}
