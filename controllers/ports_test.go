package controllers_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/port"
	"github.com/headgate/headgate/dataplane/ir"
)

// ports are the ports of a host as a test wants them.
type ports struct {
	mu       sync.Mutex
	listener port.Listener // of any address; without an inode there is none
	verdict  port.Verdict
	slow     time.Duration // that Reach takes
	asked    int           // calls of Holder
	reached  [][]netip.AddrPort
}

func (p *ports) Listener(netip.AddrPort) (port.Listener, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener, p.listener.Inode != 0
}

func (p *ports) Holder(l port.Listener) port.Holder {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return port.Holder{Listener: l, PID: int(l.Inode), Command: "nginx"}
}

func (p *ports) Reach(ctx context.Context, to []netip.AddrPort) map[netip.AddrPort]port.Verdict {
	p.mu.Lock()
	p.reached = append(p.reached, to)
	slow, verdict := p.slow, p.verdict
	p.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil
	}
	out := make(map[netip.AddrPort]port.Verdict)
	for _, a := range to {
		out[a] = verdict
	}
	return out
}

func (p *ports) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// counts returns how often Holder and Reach were called.
func (p *ports) counts() (holder, reach int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, len(p.reached)
}

// stage runs a loop between fakes.
type stage struct {
	*controllers.Loop
	src   *source
	plane *plane
	ports *ports
	logs  *observer.ObservedLogs
}

// onStage runs f with a loop that runs, in a bubble.
func onStage(t *testing.T, p *ports, result ir.ApplyResult, f func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		s := &stage{src: &source{in: gateways(80), changed: make(chan struct{}, 1)}, plane: &plane{result: result}, ports: p, logs: logs}
		s.src.in.Options.Addresses.Node = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
		s.Loop = newLoop(t, controllers.Options{Source: s.src, DataPlane: s.plane, Ports: p, Logger: zap.New(core)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		f(s)
		cancel()
		<-ended
		time.Sleep(3 * time.Second) // what is being tried ends
	})
}

// says returns what the listener says about being programmed.
func (s *stage) says() string {
	for _, c := range s.State().Report.Gateways[0].Status.Listeners[0].Conditions {
		if c.Type == "Programmed" {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func wantSays(t *testing.T, s *stage, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if got := s.says(); !strings.Contains(got, p) {
			t.Errorf("the listener says %q, want %q in it", got, p)
		}
	}
}

// Who holds a port is told and looked up once; when he goes, or another one comes,
// it is noticed at once, and not only at the next of ever rarer attempts.
func TestPortHeld(t *testing.T) {
	taken := ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": fmt.Errorf("bind: %w", syscall.EADDRINUSE)}}
	held := func(inode uint64) port.Listener {
		return port.Listener{Addr: netip.MustParseAddrPort("10.0.0.5:80"), UID: 33, Inode: inode}
	}
	onStage(t, &ports{listener: held(812)}, taken, func(s *stage) {
		wantSays(t, s, "False PortUnavailable", "address already in use: 10.0.0.5:80 is held by nginx (pid 812, user 33); ")
		time.Sleep(10 * time.Minute)
		if holder, reach := s.ports.counts(); holder != 1 || reach != 0 {
			t.Errorf("the holder was looked up %d times, and %d connections were made", holder, reach)
		}
		if n := s.logs.FilterMessage("configuration applied").Len(); n != 1 {
			t.Errorf("%d applications are logged, want the first", n)
		}
		s.ports.set(func() { s.ports.listener = held(813) })
		time.Sleep(time.Second)
		wantSays(t, s, "held by nginx (pid 813, user 33)")

		s.plane.answer(ir.ApplyResult{})
		s.ports.set(func() { s.ports.listener, s.ports.verdict = port.Listener{}, port.Arrives })
		time.Sleep(time.Second)
		wantSays(t, s, "True Programmed")
	})
}

// Nobody is found: the system's error is told.
func TestPortHeldByNobody(t *testing.T) {
	taken := ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": syscall.EADDRINUSE}}
	onStage(t, &ports{}, taken, func(s *stage) { wantSays(t, s, "False PortUnavailable", "ss -ltnp 'sport = :80' shows it") })
	other := ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": syscall.EACCES}}
	onStage(t, &ports{listener: port.Listener{Inode: 1}}, other, func(s *stage) {
		wantSays(t, s, "False PortUnavailable", "CAP_NET_BIND_SERVICE")
		if holder, _ := s.ports.counts(); holder != 0 {
			t.Error("a holder was looked up, though the port is free")
		}
	})
}

// Connections that go elsewhere are told from the beginning, and when they come
// again. While all is well nothing is tried.
func TestPortDiverted(t *testing.T) {
	onStage(t, &ports{verdict: port.Diverted}, ir.ApplyResult{}, func(s *stage) {
		wantSays(t, s, "False PortUnavailable", "connections to 192.0.2.1:80 come to somebody else")
		applied := len(s.plane.after(time.Now()))
		time.Sleep(61 * time.Second)
		if _, reach := s.ports.counts(); reach != 7 {
			t.Errorf("tried %d times in a minute, want 7", reach)
		}
		s.ports.set(func() { s.ports.verdict = port.Refused })
		time.Sleep(11 * time.Second)
		wantSays(t, s, "False PortUnavailable", "connections to 192.0.2.1:80 are refused")
		s.ports.set(func() { s.ports.verdict = port.Unknown })
		time.Sleep(time.Minute)
		wantSays(t, s, "are refused")
		s.ports.set(func() { s.ports.verdict = port.Arrives })
		time.Sleep(11 * time.Second)
		wantSays(t, s, "True Programmed: The listener is served")
		if n := len(s.plane.after(time.Now())); n != applied {
			t.Errorf("the snapshot was applied %d times more", n-applied)
		}
		_, before := s.ports.counts()
		time.Sleep(time.Hour)
		if _, reach := s.ports.counts(); reach != before {
			t.Errorf("tried %d times in an idle hour", reach-before)
		}
	})
}

// What a process must be restarted for is told beside what is tried, once, and
// applied once.
func TestRestartRequired(t *testing.T) {
	restart := ir.ApplyResult{Restart: []ir.Setting{{Name: "workers", Runs: "2", Asked: "4"}}}
	onStage(t, &ports{verdict: port.Arrives}, restart, func(s *stage) {
		wantSays(t, s, "True Programmed")
		time.Sleep(time.Hour)
		r := s.State().Report
		last := r.Classes[0].Status.Conditions[len(r.Classes[0].Status.Conditions)-1]
		if last.Type != compile.ConditionParametersApplied || last.Status != metav1.ConditionFalse || !strings.Contains(last.Message, "workers: 4 is asked for, the process runs with 2") {
			t.Errorf("the class says %+v", last)
		}
		if want := "workers: 4 is asked for, the process runs with 2"; r.Restart() != want {
			t.Errorf("the report says %q, want %q", r.Restart(), want)
		}
		if n := len(s.plane.after(time.Now())); n != 1 {
			t.Errorf("the snapshot was applied %d times", n)
		}
	})
}

// A Service of type LoadBalancer that comes is a reason to try again; another
// route is none.
func TestPortRival(t *testing.T) {
	onStage(t, &ports{verdict: port.Arrives}, ir.ApplyResult{}, func(s *stage) {
		change := func(services ...*corev1.Service) {
			s.src.mu.Lock()
			s.src.in.Services = services
			s.src.mu.Unlock()
			s.src.changed <- struct{}{}
			time.Sleep(time.Second)
		}
		change(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "plain"}})
		if _, reach := s.ports.counts(); reach != 1 {
			t.Errorf("tried %d times, want once", reach)
		}
		s.ports.set(func() { s.ports.verdict = port.Diverted })
		lb := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "traefik"}}
		lb.Spec.Type, lb.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
		lb.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		change(lb)
		wantSays(t, s, "False PortUnavailable", "for Service kube-system/traefik of type LoadBalancer", "disable: [traefik, servicelb]")
	})
}

// A host that swallows connections keeps nothing waiting.
func TestPortSlow(t *testing.T) {
	onStage(t, &ports{verdict: port.Diverted, slow: time.Second}, ir.ApplyResult{}, func(s *stage) {
		time.Sleep(200 * time.Millisecond)
		if s.State() == nil {
			t.Fatal("the turn waits")
		}
		wantSays(t, s, "True Programmed")
		s.src.mu.Lock()
		s.src.in.Gateways = append(s.src.in.Gateways, gateways(81).Gateways...)
		s.src.mu.Unlock()
		s.src.changed <- struct{}{}
		time.Sleep(4 * time.Second)
		for _, g := range s.State().Report.Gateways {
			for _, c := range g.Status.Conditions {
				if c.Type == "Programmed" && c.Status != metav1.ConditionFalse {
					t.Errorf("Gateway %s says %s, want that it can't be reached", g.Name, c.Message)
				}
			}
		}
	})
	onStage(t, &ports{slow: time.Hour}, ir.ApplyResult{}, func(s *stage) {
		time.Sleep(time.Minute)
		wantSays(t, s, "True Programmed")
		if _, reach := s.ports.counts(); reach != 1 {
			t.Errorf("tried %d times, want once: nothing is known", reach)
		}
	})
}
