package envtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/pressure"
	"github.com/headgate/headgate/dataplane/upstream"
)

// TestPolicyFields edits each part of BackendPolicies and waits until a client sees
// that the gateway does otherwise. All requests come on one connection, which is
// never lost; and beside each Service a response streams, which comes whole.
func TestPolicyFields(t *testing.T) {
	b := newBench(t)
	poolFields(b)
	timeoutFields(b)
	connectionFields(b)
	adaptiveFields(b)
	pressureFields(b)
	balancingFields(b)
	hashFields(b)
	slowStartFields(b)
	checkFields(b)
	ejectionFields(b)
	retryFields(b)
	if n := b.client.dials.Load(); n != 1 {
		t.Errorf("the client made %d connections, want 1", n)
	}
}

func pointer[T any](v T) *T { return &v }

func duration(text string) *v1alpha1.Duration { return pointer(v1alpha1.Duration(text)) }

// size, waiting and waitTimeout.
func poolFields(b *bench) {
	b.on("pool", 1, v1alpha1.BackendPolicySpec{
		Pool: &v1alpha1.Pool{Size: pointer[int32](2), Waiting: pointer[int32](0)},
	}, func(s *subject, all []*origin, busy *origin) {
		first := s.aside("/hold") // beside the stream: the pool is full
		s.eventually(func() string { return unless(busy.held.Load(), 1) })
		s.fails("/", http.StatusServiceUnavailable, upstream.ReasonPoolFull)
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Pool.Waiting, p.Pool.WaitTimeout = pointer[int32](10), duration("1ms")
		}, func(c *ir.Cluster) bool { return c.Pressure.Held == 10 })
		s.fails("/", http.StatusServiceUnavailable, upstream.ReasonPoolTimeout)
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.WaitTimeout = duration("10m") },
			func(c *ir.Cluster) bool { return c.Pressure.HoldTime == 10*time.Minute })
		second := s.aside("/hold")
		s.is(func(st upstream.Stats) bool { return st.Held == 1 })
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.Size = pointer[int32](50) },
			func(c *ir.Cluster) bool { return c.Pool.Size == 50 })
		s.eventually(func() string { return unless(busy.held.Load(), 2) }) // it has a place now
		s.serves("/")
		busy.let()
		for _, got := range []int{<-first, <-second} {
			if got != http.StatusOK {
				s.Errorf("a request that was under way got %d", got)
			}
		}
	})
}

// responseTimeout; and connectTimeout, to an endpoint that takes no connection.
func timeoutFields(b *bench) {
	off := &v1alpha1.AdaptiveTimeout{Mode: pointer(v1alpha1.ModeOff)}
	b.on("response", 1, v1alpha1.BackendPolicySpec{
		Pool: &v1alpha1.Pool{ResponseTimeout: duration("50ms")}, AdaptiveTimeout: off,
	}, func(s *subject, _ []*origin, _ *origin) {
		s.fails("/never", http.StatusGatewayTimeout, upstream.ReasonResponseTimeout)
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.ResponseTimeout = duration("0s") },
			func(c *ir.Cluster) bool { return c.Pool.ResponseTimeout < 0 })
		s.serves("/slow")
	})
	b.on("connect", 0, v1alpha1.BackendPolicySpec{
		Pool: &v1alpha1.Pool{ConnectTimeout: duration("10m")}, AdaptiveTimeout: off,
	}, func(s *subject, _ []*origin, _ *origin) {
		s.join(0, mute(s))
		s.endpoints(1)
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.ConnectTimeout = duration("20ms") },
			func(c *ir.Cluster) bool { return c.Pool.ConnectTimeout == 20*time.Millisecond })
		s.fails("/", http.StatusGatewayTimeout, upstream.ReasonConnectTimeout)
	})
}

// idleTimeout, maxAge and warm.
func connectionFields(b *bench) {
	b.on("idle", 1, v1alpha1.BackendPolicySpec{Pool: &v1alpha1.Pool{IdleTimeout: duration("1h")}}, func(s *subject, _ []*origin, _ *origin) {
		from := func() string { return s.ask("/").Header.Get("From") }
		kept := func() string {
			first := from()
			time.Sleep(50 * time.Millisecond)
			return unless(from(), first)
		}
		s.eventually(kept)
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.IdleTimeout = duration("1ms") },
			func(c *ir.Cluster) bool { return c.Pool.IdleTimeout == time.Millisecond })
		s.eventually(func() string {
			if kept() == "" {
				return "an unused connection is kept for 50 ms"
			}
			return ""
		})
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.IdleTimeout = duration("1h") },
			func(c *ir.Cluster) bool { return c.Pool.IdleTimeout == time.Hour })
		s.eventually(kept)
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool.MaxAge = duration("1s") },
			func(c *ir.Cluster) bool { return c.Pool.MaxAge == time.Second })
		old := from()
		s.eventually(func() string {
			if from() == old {
				return "a connection is used beyond its age"
			}
			return ""
		})
	})
	b.on("warm", 1, v1alpha1.BackendPolicySpec{}, func(s *subject, _ []*origin, _ *origin) {
		cold := newOrigin(s)
		s.join(1, cold.addr)
		s.endpoints(2)
		if n := cold.conns.Load(); n != 0 {
			s.Errorf("%d connections before a request came, want none", n)
		}
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pool = &v1alpha1.Pool{Warm: pointer[int32](3)} },
			func(c *ir.Cluster) bool { return c.Pool.Warm == 3 })
		warm := newOrigin(s)
		s.join(2, warm.addr)
		s.eventually(func() string { return unless(warm.conns.Load(), 2*3) }) // on each of two loops
		if n := warm.requests.Load(); n != 0 {
			s.Errorf("%d requests came, want none", n)
		}
	})
}

// adaptiveTimeout: mode, initial, min, max and betaPercent.
func adaptiveFields(b *bench) {
	// Before the first answer the deadline is initial times beta.
	b.on("initial", 0, v1alpha1.BackendPolicySpec{AdaptiveTimeout: &v1alpha1.AdaptiveTimeout{
		Initial: duration("20ms"), Min: duration("1ms"), Max: duration("1m"),
	}}, func(s *subject, _ []*origin, _ *origin) {
		s.join(0, newOrigin(s).addr)
		s.endpoints(1)
		if got := s.stats().Timeout.Deadline; got != 50*time.Millisecond {
			s.Errorf("the deadline is %v, want 50ms", got)
		}
		s.fails("/never", http.StatusGatewayTimeout, upstream.ReasonAdaptiveTimeout)
	})
	b.on("adaptive", 1, v1alpha1.BackendPolicySpec{AdaptiveTimeout: &v1alpha1.AdaptiveTimeout{Mode: pointer(v1alpha1.ModeOff)}}, func(s *subject, _ []*origin, _ *origin) {
		s.serves("/slow")
		settings := func(mode v1alpha1.Mode, beta int32) func(*v1alpha1.BackendPolicySpec) {
			return func(p *v1alpha1.BackendPolicySpec) {
				p.AdaptiveTimeout = &v1alpha1.AdaptiveTimeout{
					Mode: &mode, BetaPercent: &beta, Initial: duration("10ms"), Min: duration("5ms"), Max: duration("2s"),
				}
			}
		}
		is := func(mode ir.AdaptiveMode, beta float64) func(*ir.Cluster) bool {
			return func(c *ir.Cluster) bool { return c.Adaptive.Mode == mode && c.Adaptive.Beta == beta }
		}
		ratio := func(beta float64) {
			s.Helper()
			s.eventually(func() string {
				s.ask("/")
				st := s.stats().Timeout
				want := time.Duration(beta * float64(st.Estimate))
				want = min(max(want, 5*time.Millisecond), 2*time.Second)
				if d := st.Deadline - want; d < -time.Millisecond || d > time.Millisecond || st.Answers == 0 {
					return fmt.Sprintf("the deadline is %v with an estimate of %v, want %v times that", st.Deadline, st.Estimate, beta)
				}
				return ""
			})
		}
		// At most max, 2 s, whatever is learned.
		s.edit(settings(v1alpha1.ModeEnforce, 300), is(ir.AdaptiveEnforce, 3))
		ratio(3)
		s.fails("/never", http.StatusGatewayTimeout, upstream.ReasonAdaptiveTimeout)
		s.edit(settings(v1alpha1.ModeEnforce, 1000), is(ir.AdaptiveEnforce, 10))
		ratio(10)
		// Observed, it is shown as before and cuts nobody.
		s.edit(settings(v1alpha1.ModeObserve, 300), is(ir.AdaptiveObserve, 3))
		s.eventually(func() string {
			for range 20 {
				s.ask("/")
			}
			if d := s.stats().Timeout.Deadline; d >= slow {
				return fmt.Sprintf("the deadline is %v, want it below %v", d, slow)
			}
			return unless(s.ask("/slow").StatusCode, http.StatusOK)
		})
	})
}

// pressure: heldBytes, thresholdPercent and mode.
func pressureFields(b *bench) {
	b.on("pressure", 1, v1alpha1.BackendPolicySpec{
		Pool:     &v1alpha1.Pool{Size: pointer[int32](1), Waiting: pointer[int32](100), WaitTimeout: duration("10m")},
		Pressure: &v1alpha1.Pressure{HeldBytes: pointer[int64](1)},
	}, func(s *subject, _ []*origin, busy *origin) {
		s.fails("/", http.StatusServiceUnavailable, upstream.ReasonPoolFull) // nothing can be kept of it
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pressure.HeldBytes = pointer[int64](1 << 20) },
			func(c *ir.Cluster) bool { return c.Pressure.HeldBytes == 1<<20 })
		held := s.aside("/")
		s.is(func(st upstream.Stats) bool { return st.Held == 1 && st.State == pressure.Holding })
		// One of a hundred places is in use: from 1 % on they are paced.
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Pool.Size, p.Pressure.ThresholdPercent = pointer[int32](100), pointer[int32](1)
		}, func(c *ir.Cluster) bool { return c.Pool.Size == 100 && c.Pressure.Theta == 0.01 })
		if got := <-held; got != http.StatusOK {
			s.Errorf("the request that was held got %d", got)
		}
		s.is(func(st upstream.Stats) bool { return st.State == pressure.Pacing && st.Theta == 0.01 })
		s.serves("/")
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Pressure.Mode = pointer(v1alpha1.SwitchOff) },
			func(c *ir.Cluster) bool { return c.Pressure.Off })
		s.is(func(st upstream.Stats) bool { return st.State == pressure.Calm && st.Active == 1 })
	})
}

// balancing: LeastRequest, RoundRobin and PeakEWMA.
func balancingFields(b *bench) {
	b.on("balancing", 2, v1alpha1.BackendPolicySpec{Balancing: &v1alpha1.Balancing{Type: v1alpha1.BalancingLeastRequest}}, func(s *subject, all []*origin, busy *origin) {
		idle := all[0]
		if busy == idle {
			idle = all[1]
		}
		becomes := func(kind v1alpha1.BalancingType, balance ir.Balance) {
			s.Helper()
			s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Balancing.Type = kind }, func(c *ir.Cluster) bool { return c.Balance == balance })
		}
		// Of n requests the busy one gets between least and most.
		gets := func(n, least, most int) {
			s.Helper()
			s.eventually(func() string {
				got := s.shares(n)
				if x := got[busy.addr.String()]; x < least || x > most || x+got[idle.addr.String()] != n {
					return fmt.Sprintf("of %d requests %v, want %d to %d at %v", n, got, least, most, busy.addr)
				}
				return ""
			})
		}
		gets(20, 0, 5) // an eighth: the stream keeps it busier than the other one
		becomes(v1alpha1.BalancingRoundRobin, ir.BalanceRoundRobin)
		gets(20, 9, 11)
		// Who is idle now is slow, too: the other one promises the shorter wait.
		idle.delay.Store(int64(slow / 2))
		becomes(v1alpha1.BalancingPeakEWMA, ir.BalancePeakEWMA)
		gets(10, 9, 10)
		idle.delay.Store(0)
		becomes(v1alpha1.BalancingLeastRequest, ir.BalanceLeastRequest)
		gets(20, 0, 5)
	})
}

// balancing: ConsistentHash, by header, cookie and the client's address.
func hashFields(b *bench) {
	header := func(key string) func(*http.Request) { return func(q *http.Request) { q.Header.Set("X-User", key) } }
	cookie := func(key string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set("Cookie", "session="+key) }
	}
	b.on("hash", 2, v1alpha1.BackendPolicySpec{Balancing: &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin}}, func(s *subject, all []*origin, _ *origin) {
		// Equal keys go to the same origin, and not all keys to one.
		sticks := func(key func(string) func(*http.Request)) {
			s.Helper()
			s.eventually(func() string {
				owners := make(map[string]bool)
				for i := range 20 {
					got := s.shares(3, key(fmt.Sprint("user", i)))
					if len(got) != 1 {
						return fmt.Sprintf("one key went to %v", got)
					}
					for o := range got {
						owners[o] = true
					}
				}
				return unless(len(owners), 2)
			})
		}
		becomes := func(on v1alpha1.HashOn, kind ir.HashKind) {
			s.Helper()
			s.edit(func(p *v1alpha1.BackendPolicySpec) {
				p.Balancing = &v1alpha1.Balancing{Type: v1alpha1.BalancingConsistentHash, HashOn: &on}
			}, func(c *ir.Cluster) bool { return c.Balance == ir.BalanceConsistentHash && c.HashOn.Kind == kind })
		}
		becomes(v1alpha1.HashOn{Type: v1alpha1.HashHeader, Name: pointer("X-User")}, ir.HashHeader)
		sticks(header)
		becomes(v1alpha1.HashOn{Type: v1alpha1.HashCookie, Name: pointer("session")}, ir.HashCookie)
		sticks(cookie)
		becomes(v1alpha1.HashOn{Type: v1alpha1.HashClientIP}, ir.HashClient)
		s.eventually(func() string { return unless(len(s.shares(20)), 1) }) // one client
		owners := make(map[string]bool)
		for i := range 40 {
			from := net.IPv4(127, 0, 0, byte(2+i))
			owner := s.from(from)
			if again := s.from(from); again != owner {
				s.Errorf("%v went to %s, then to %s", from, owner, again)
			}
			owners[owner] = true
		}
		if len(owners) != 2 {
			s.Errorf("40 clients went to %d of 2 origins", len(owners))
		}
	})
}

// from sends a GET from an address of the loopback network, and tells who answered.
func (s *subject) from(addr net.IP) string {
	s.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: addr}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	q, err := http.NewRequest(http.MethodGet, "http://"+s.client.addr, nil)
	if err != nil {
		s.Fatal(err)
	}
	q.Host = s.host()
	res, err := client.Do(q)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Header.Get("Origin")
}

// balancing: slowStart.
func slowStartFields(b *bench) {
	b.on("slowstart", 1, v1alpha1.BackendPolicySpec{
		Balancing: &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin, SlowStart: duration("1h")},
	}, func(s *subject, _ []*origin, _ *origin) {
		late := newOrigin(s)
		s.join(1, late.addr)
		s.endpoints(2)
		if got := s.shares(60)[late.addr.String()]; got > 20 { // about 6
			s.Errorf("of 60 requests %d came to who has just joined", got)
		}
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Balancing.SlowStart = nil }, func(c *ir.Cluster) bool { return c.SlowStart == 0 })
		s.eventually(func() string {
			if got := s.shares(20)[late.addr.String()]; got < 9 || got > 11 {
				return fmt.Sprintf("of 20 requests %d came to who has joined, want half of them", got)
			}
			return ""
		})
	})
}

// all waits until all of 20 requests are answered 200, by one origin.
func (s *subject) all(by *origin) {
	s.Helper()
	s.eventually(func() string { return unless(s.shares(20)[by.addr.String()], 20) })
}

// health.check: path, host, interval, timeout, unhealthy, healthy and statuses.
func checkFields(b *bench) {
	b.on("check", 2, v1alpha1.BackendPolicySpec{Balancing: &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin}}, func(s *subject, all []*origin, _ *origin) {
		one, two := all[0], all[1]
		one.health.Store(http.StatusInternalServerError)
		if got := s.shares(20)[one.addr.String()]; got < 5 {
			s.Errorf("without a check %d of 20 requests came to who is unwell", got)
		}
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Health = &v1alpha1.Health{Check: &v1alpha1.HealthCheck{
				Path: "/healthz", Host: pointer("check.example"), Interval: duration("100ms"), Timeout: duration("10m"),
				Unhealthy: pointer[int32](1), Healthy: pointer[int32](1),
			}}
		}, func(c *ir.Cluster) bool { return c.Check != nil })
		s.all(two)
		if got := one.asked.Load(); got != "check.example" {
			s.Errorf("the check asks for host %v", got)
		}
		// What was a failure is asked for.
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Health.Check.Statuses = []v1alpha1.StatusRange{{First: 500, Last: 500}}
		}, func(c *ir.Cluster) bool { return len(c.Check.Statuses) == 1 })
		s.all(one)
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Health.Check.Statuses, p.Health.Check.Path, p.Health.Check.Timeout = nil, "/never", duration("10ms")
		}, func(c *ir.Cluster) bool { return c.Check.Timeout == 10*time.Millisecond })
		s.is(func(st upstream.Stats) bool { return st.Unwell == 2 })
		s.serves("/") // all of them are out: all get requests
		s.edit(func(p *v1alpha1.BackendPolicySpec) { p.Health.Check = nil }, func(c *ir.Cluster) bool { return c.Check == nil })
		s.eventually(func() string { return unless(len(s.shares(20)), 2) })
	})
}

// health.ejection: mode, failures, serverErrors, period, maxPeriod and maxPercent.
func ejectionFields(b *bench) {
	b.on("ejection", 2, v1alpha1.BackendPolicySpec{
		Balancing: &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin},
		Health:    &v1alpha1.Health{Ejection: &v1alpha1.Ejection{Mode: pointer(v1alpha1.SwitchOff), Failures: pointer[int32](1), ServerErrors: true}},
	}, func(s *subject, all []*origin, _ *origin) {
		sick, well := all[0], all[1]
		sick.status.Store(http.StatusServiceUnavailable)
		if got := s.shares(40)[well.addr.String()]; got > 25 { // the others got the 503
			s.Errorf("nobody is to be ejected, and yet one got %d of 40 requests", got)
		}
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Health.Ejection.Mode, p.Health.Ejection.MaxPercent = pointer(v1alpha1.SwitchEnforce), pointer[int32](49)
		}, func(c *ir.Cluster) bool { return !c.Ejection.Off && c.Ejection.MaxPercent == 49 })
		if got := s.shares(40)[well.addr.String()]; got > 25 {
			s.Errorf("49 %% of two is none, and yet one got %d of 40 requests", got)
		}
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.Health.Ejection.MaxPercent, p.Health.Ejection.Period = pointer[int32](50), duration("100ms")
			p.Health.Ejection.MaxPeriod, p.Health.Ejection.Failures = duration("5s"), pointer[int32](2)
		}, func(c *ir.Cluster) bool { return c.Ejection.Failures == 2 && c.Ejection.MaxPercent == 50 })
		// Each ejection in a row is twice as long as the last one.
		s.is(func(st upstream.Stats) bool {
			s.shares(4)
			return st.Ejected == 1
		})
		s.all(well)
		// Another route to the Service shares what is known of its endpoints.
		s.route("ejection-too", to("ejection", 80))
		s.eventually(func() string {
			got := 0
			for range 20 {
				if res := s.ask("/", func(q *http.Request) { q.Host = "ejection-too.example.com" }); res.Header.Get("Origin") == well.addr.String() {
					got++
				}
			}
			return unless(got, 20)
		})
		sick.status.Store(http.StatusOK)
		s.eventually(func() string { return unless(len(s.shares(20)), 2) }) // it is over some time
	})
}

// retryBudget: mode.
func retryFields(b *bench) {
	b.on("retry", 1, v1alpha1.BackendPolicySpec{
		Balancing:   &v1alpha1.Balancing{Type: v1alpha1.BalancingRoundRobin},
		Health:      &v1alpha1.Health{Ejection: &v1alpha1.Ejection{Mode: pointer(v1alpha1.SwitchOff)}},
		RetryBudget: &v1alpha1.RetryBudget{Mode: pointer(v1alpha1.SwitchOff)},
	}, func(s *subject, all []*origin, _ *origin) {
		s.join(1, refuser(s))
		s.endpoints(2)
		s.fails("/", http.StatusBadGateway, upstream.ReasonConnectFailed)
		s.edit(func(p *v1alpha1.BackendPolicySpec) {
			p.RetryBudget = &v1alpha1.RetryBudget{Percent: pointer[int32](1000), MinPerSecond: pointer[int32](10_000)}
		}, func(c *ir.Cluster) bool { return !c.Retries.Off && c.Retries.Percent == 1000 })
		s.all(all[0])
	})
}
