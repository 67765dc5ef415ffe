package upstream

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// health is a rig with one cluster on one loop.
type health struct {
	*rig
	cluster *Cluster
	spec    *ir.Cluster
	events  chan EndpointEvent
}

func newHealth(t *testing.T, edit func(*ir.Cluster), addresses ...string) *health {
	t.Helper()
	h := &health{events: make(chan EndpointEvent, 64)}
	h.rig = newRig(t, 1, Options{OnEndpoint: func(e EndpointEvent) { h.events <- e }})
	h.update(edit, addresses...)
	return h
}

func (h *health) update(edit func(*ir.Cluster), addresses ...string) {
	h.spec = spec(ir.Pool{Size: 1 << 20}, ir.BalanceRoundRobin, addresses...)
	if edit != nil {
		edit(h.spec)
	}
	h.Update([]*ir.Cluster{h.spec})
	h.cluster = h.Cluster(h.spec.Name)
}

// endpoint returns the endpoint with the address.
func (h *health) endpoint(address string) *Endpoint {
	h.t.Helper()
	for _, e := range h.cluster.state.Load().endpoints {
		if e.text == address {
			return e
		}
	}
	h.t.Fatalf("no endpoint %s", address)
	return nil
}

// shares sends n requests that end at once and returns where they went.
func (h *health) shares(n int) map[string]int {
	got := map[string]int{}
	for range n {
		x := h.open(h.cluster, 0, Try{Fresh: true})
		got[x.Endpoint().String()]++
		x.Cancel()
	}
	return got
}

// fail makes an endpoint fail n requests.
func (h *health) fail(address string, n int) {
	for range n {
		h.endpoint(address).failed(h.loops[0].now, h.cluster.state.Load(), FaultConnect)
	}
}

func (h *health) wantEvent(change EndpointChange, address string, period time.Duration) {
	h.t.Helper()
	want := EndpointEvent{Cluster: h.cluster.name, Address: address, Change: change, Period: period}
	if got := <-h.events; got != want {
		h.t.Fatalf("event %+v, want %+v", got, want)
	}
}

const (
	one   = "10.0.0.1:80"
	two   = "10.0.0.2:80"
	three = "10.0.0.3:80"
)

func TestEjection(t *testing.T) {
	h := newHealth(t, nil, one, two)
	loop := h.loops[0]
	h.fail(one, DefaultEjectionFailures-1)
	loop.dialErr = errors.New("refused")
	for n := 0; h.endpoint(one).ejected.Load() == 0; n++ {
		if n == 40 {
			t.Fatal("not ejected")
		}
		if x := h.open(h.cluster, 0, Try{}); x.failure.Err == nil || x.failure.Endpoint == nil {
			t.Fatalf("%+v", x.failure)
		}
	}
	// Half of two may be ejected: the other one is never, however it fails.
	loop.dialErr = nil
	h.wantEvent(EndpointEjected, one, DefaultEjectionPeriod)
	if got := h.shares(100); got[two] != 100 {
		t.Fatalf("an ejected endpoint got requests: %v", got)
	}
	if s := h.cluster.Stats(); s.Ejected != 1 || s.Endpoints != 2 {
		t.Errorf("stats %+v", s)
	}
	h.fail(two, 100)
	if h.endpoint(two).ejected.Load() != 0 {
		t.Fatal("the last endpoint was ejected")
	}
	loop.advance(DefaultEjectionPeriod)
	if got := h.shares(100); got[one] < 45 || got[one] > 55 {
		t.Fatalf("after the ejection: %v", got)
	}
	h.wantEvent(EndpointReturned, one, 0)
	// On probation one failure is enough, and counts double.
	h.endpoint(two).succeeded()
	h.fail(one, 1)
	h.wantEvent(EndpointEjected, one, 2*DefaultEjectionPeriod)
	loop.advance(2*DefaultEjectionPeriod - 1)
	if got := h.shares(10); got[one] != 0 {
		t.Fatalf("back too early: %v", got)
	}
	loop.advance(1)
	h.shares(8)
	h.wantEvent(EndpointReturned, one, 0)
	// A success ends the probation.
	h.endpoint(one).succeeded()
	h.fail(one, DefaultEjectionFailures-1)
	if h.endpoint(one).ejected.Load() != 0 {
		t.Fatal("ejected on probation that was over")
	}
	h.fail(one, 1)
	h.wantEvent(EndpointEjected, one, DefaultEjectionPeriod)
	if n := h.cluster.special.Load(); n != 1 {
		t.Errorf("%d special endpoints, want 1", n)
	}
}

func TestEjectionPeriodIsBounded(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) {
		c.Ejection = ir.Ejection{Failures: 1, Period: time.Second, MaxPeriod: 5 * time.Second}
	}, one, two)
	for _, seconds := range []int{1, 2, 4, 5, 5, 5} {
		period := time.Duration(seconds) * time.Second
		h.fail(one, 1)
		h.wantEvent(EndpointEjected, one, period)
		h.loops[0].advance(period)
		h.shares(8)
		h.wantEvent(EndpointReturned, one, 0)
	}
}

func TestEjectionSettings(t *testing.T) {
	for _, test := range []struct {
		name     string
		ejection ir.Ejection
		failures int
		want     int // ejected of four
	}{
		{"default, below", ir.Ejection{}, DefaultEjectionFailures - 1, 0},
		{"default", ir.Ejection{}, DefaultEjectionFailures, 2},
		{"off", ir.Ejection{Off: true}, 100, 0},
		{"two failures", ir.Ejection{Failures: 2}, 2, 2},
		{"a quarter", ir.Ejection{MaxPercent: 25}, 100, 1},
		{"below one", ir.Ejection{MaxPercent: 24}, 100, 0},
		{"all", ir.Ejection{MaxPercent: 100}, 100, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			addresses := []string{one, two, three, "10.0.0.4:80"}
			h := newHealth(t, func(c *ir.Cluster) { c.Ejection = test.ejection }, addresses...)
			for _, a := range addresses {
				h.fail(a, test.failures)
			}
			if s := h.cluster.Stats(); s.Ejected != test.want {
				t.Errorf("%d ejected, want %d", s.Ejected, test.want)
			}
			// Whoever is out: requests go on, to anybody if need be.
			got := h.shares(400)
			if len(got) != 4-test.want && test.want != 4 {
				t.Errorf("requests went to %v", got)
			}
		})
	}
}

// TestWhatCounts has each way in which a request can end.
func TestWhatCounts(t *testing.T) {
	const gateway = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
	for _, test := range []struct {
		name         string
		serverErrors bool
		end          func(h *health, x *caller, tr *fakeTransport)
		want         int32 // failures in a row, after two
	}{
		{"an answer", false, func(h *health, x *caller, tr *fakeTransport) { h.serve(tr, okAnswer) }, 0},
		{"a server's error", false, func(h *health, x *caller, tr *fakeTransport) { h.serve(tr, gateway) }, 0},
		{"a server's error that counts", true, func(h *health, x *caller, tr *fakeTransport) { h.serve(tr, gateway) }, 3},
		{"refused", false, func(h *health, x *caller, tr *fakeTransport) { tr.conn.OnClose(errors.New("refused")) }, 3},
		{"connect timeout", false, func(h *health, x *caller, tr *fakeTransport) { h.loops[0].advance(DefaultConnectTimeout) }, 3},
		{"response timeout", false, func(h *health, x *caller, tr *fakeTransport) {
			tr.conn.OnConnect()
			h.loops[0].advance(DefaultResponseTimeout)
		}, 3},
		{"reset", false, func(h *health, x *caller, tr *fakeTransport) {
			tr.conn.OnConnect()
			tr.conn.OnClose(errors.New("reset"))
		}, 3},
		{"not HTTP", false, func(h *health, x *caller, tr *fakeTransport) { h.serve(tr, "SSH-2.0\r\n\r\n") }, 3},
		{"a route's timeout", false, func(h *health, x *caller, tr *fakeTransport) {
			tr.conn.OnConnect()
			x.Blame()
			x.Cancel()
		}, 3},
		{"reset in the body", false, func(h *health, x *caller, tr *fakeTransport) {
			h.serve(tr, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
			tr.conn.OnClose(errors.New("reset"))
		}, 0},
		{"the client went", false, func(h *health, x *caller, tr *fakeTransport) {
			tr.conn.OnConnect()
			x.Cancel()
		}, 2},
		{"a stale connection", false, func(h *health, x *caller, tr *fakeTransport) {
			h.serve(tr, okAnswer)
			h.endpoint(one).failures.Store(2)
			h.open(h.cluster, 0, Try{})
			tr.conn.OnClose(errors.New("reset"))
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHealth(t, func(c *ir.Cluster) { c.Ejection.ServerErrors = test.serverErrors }, one)
			h.endpoint(one).failures.Store(2)
			x := h.open(h.cluster, 0, Try{})
			test.end(h, x, h.loops[0].last())
			if got := h.endpoint(one).failures.Load(); got != test.want {
				t.Errorf("%d failures in a row, want %d", got, test.want)
			}
		})
	}
}

// TestEndpointsThatGo checks that the count of special endpoints is right when
// endpoints are ejected, return, fail checks and are removed at the same time.
func TestEndpointsThatGo(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Ejection = ir.Ejection{Failures: 1, Period: 1, MaxPercent: 100} }, one, two, three)
	h.cluster.opts.OnEndpoint = nil
	state := h.cluster.state.Load()
	var work sync.WaitGroup
	var stop atomic.Bool
	for i := range 4 {
		work.Go(func() {
			for n := 0; !stop.Load(); n++ {
				e := state.endpoints[n%3]
				switch i {
				case 0:
					e.failed(time.Unix(1000, int64(n)), state, FaultSlow)
				case 1:
					e.available(time.Unix(2000, int64(n)))
				case 2:
					e.declare([]error{nil, errUnwell}[n%2])
				default:
					e.succeeded()
				}
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	h.update(nil, "10.0.0.9:80")
	time.Sleep(20 * time.Millisecond)
	stop.Store(true)
	work.Wait()
	if n := h.cluster.special.Load(); n != 0 {
		t.Errorf("%d special endpoints are left of those that went", n)
	}
}

// TestTheOnlyEndpointReturns checks that an ejection ends where there is nobody to
// choose from, and where nobody asks.
func TestTheOnlyEndpointReturns(t *testing.T) {
	h := newHealth(t, func(c *ir.Cluster) { c.Ejection = ir.Ejection{Failures: 1, MaxPercent: 100} }, one)
	h.cluster.opts.Now = h.loops[0].Now
	h.fail(one, 1)
	h.wantEvent(EndpointEjected, one, DefaultEjectionPeriod)
	if s := h.cluster.Stats(); s.Ejected != 1 {
		t.Errorf("stats %+v", s)
	}
	h.loops[0].advance(DefaultEjectionPeriod)
	if s := h.cluster.Stats(); s.Ejected != 0 {
		t.Errorf("an ejection that is over is shown: %+v", s)
	}
	h.shares(1)
	if h.endpoint(one).ejected.Load() != 0 || h.cluster.special.Load() != 0 {
		t.Fatal("the ejection does not end")
	}
	h.wantEvent(EndpointReturned, one, 0)
}
