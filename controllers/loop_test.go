package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// source is a source that a test writes.
type source struct {
	mu       sync.Mutex // guards what follows; the tests that run the loop lock it
	in       compile.Input
	problems []compile.Problem
	inputs   int

	changed chan struct{}
	err     error
}

func (s *source) Watch(ctx context.Context) (<-chan struct{}, error) {
	return s.changed, s.err
}

func (s *source) Input() (compile.Input, []compile.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs++
	return s.in, s.problems
}

func (s *source) turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inputs
}

func (s *source) Locate(p *compile.Problem) {
	if p.File == "" {
		p.File, p.Line = "x.yaml", 7
	}
}

// plane is a data plane that a test answers for.
type plane struct {
	mu     sync.Mutex // as in source
	got    []*ir.Snapshot
	times  []time.Time
	result ir.ApplyResult
}

func (p *plane) Apply(s *ir.Snapshot) ir.ApplyResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, s)
	p.times = append(p.times, time.Now())
	return p.result
}

// answer sets what the next calls of Apply return.
func (p *plane) answer(r ir.ApplyResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result = r
}

// after returns the seconds from start at which Apply was called.
func (p *plane) after(start time.Time) (out []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.times {
		out = append(out, int(x.Sub(start)/time.Second))
	}
	return out
}

// sink notes what it is told.
type sink struct {
	mu  sync.Mutex // as in source
	got []*compile.Report
	err error
}

func (s *sink) Write(_ context.Context, r *compile.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, r)
	return s.err
}

// fail sets what the next calls of Write return, and returns how many there were.
func (s *sink) fail(err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return len(s.got)
}

// gateways is an input with one Gateway for each port.
func gateways(ports ...int32) compile.Input {
	var in compile.Input
	in.Options.Addresses.Bind = []netip.Addr{netip.IPv4Unspecified()}
	in.Classes = []*gatewayv1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}}}
	for _, p := range ports {
		in.Gateways = append(in.Gateways, &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("g", p)},
			Spec: gatewayv1.GatewaySpec{
				GatewayClassName: "c",
				Listeners:        []gatewayv1.Listener{{Name: "http", Port: p, Protocol: gatewayv1.HTTPProtocolType}},
			},
		})
	}
	return in
}

func programmed(r *compile.Report, gateway int) string {
	for _, c := range r.Gateways[gateway].Status.Conditions {
		if c.Type == "Programmed" {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func newLoop(t *testing.T, o controllers.Options) *controllers.Loop {
	t.Helper()
	l, err := controllers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNew(t *testing.T) {
	if _, err := controllers.New(controllers.Options{}); err == nil {
		t.Error("a loop that connects nothing")
	}
	boom := errors.New("boom")
	l := newLoop(t, controllers.Options{Source: &source{err: boom}, DataPlane: &plane{}})
	if err := l.Run(t.Context()); !errors.Is(err, boom) {
		t.Errorf("a source that can't be watched: %v", err)
	}
}

// TestTurn takes one input after the other.
func TestTurn(t *testing.T) {
	src, dp, to := &source{in: gateways(80)}, &plane{}, &sink{}
	l := newLoop(t, controllers.Options{Source: src, DataPlane: dp, Sink: to})
	if l.State() != nil {
		t.Error("a state before the first turn")
	}
	l.Turn(t.Context())
	first := l.State()
	if len(dp.got) != 1 || first.Snapshot != dp.got[0] || first.Hash != first.Snapshot.Hash() || !first.Result.OK() {
		t.Fatalf("after the first turn: %+v, applied %d times", first, len(dp.got))
	}
	if programmed(first.Report, 0) != "True Programmed" || to.got[0] != first.Report {
		t.Errorf("programmed: %s", programmed(first.Report, 0))
	}
	select {
	case <-l.Ready():
	default:
		t.Error("not ready after the first snapshot")
	}

	// Nothing changed: nothing is applied, and the sink is told so.
	l.Turn(t.Context())
	if len(dp.got) != 1 || len(to.got) != 2 {
		t.Errorf("applied %d times, told %d times", len(dp.got), len(to.got))
	}
	// Another input that means the same.
	src.in = gateways(80)
	l.Turn(t.Context())
	if len(dp.got) != 1 || l.State().Snapshot != first.Snapshot {
		t.Errorf("applied %d times", len(dp.got))
	}

	// A change, with a port that is taken.
	src.in = gateways(80, 81)
	dp.result = ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:81": syscall.EADDRINUSE}}
	l.Turn(t.Context())
	second := l.State()
	if len(dp.got) != 2 || programmed(second.Report, 0) != "True Programmed" || programmed(second.Report, 1) != "False NoResources" {
		t.Errorf("applied %d times: %s, %s", len(dp.got), programmed(second.Report, 0), programmed(second.Report, 1))
	}
	if len(second.Problems) != 1 || second.Problems[0].File != "x.yaml" || second.Problems[0].Line != 7 {
		t.Errorf("problems: %v", second.Problems)
	}
	// It is tried again at each turn until the port is free.
	dp.result = ir.ApplyResult{}
	l.Turn(t.Context())
	if third := l.State(); len(dp.got) != 3 || programmed(third.Report, 1) != "True Programmed" || len(third.Problems) != 0 {
		t.Errorf("applied %d times: %s, problems %v", len(dp.got), programmed(third.Report, 1), third.Problems)
	}
	l.Turn(t.Context())
	if len(dp.got) != 3 {
		t.Errorf("applied %d times", len(dp.got))
	}
}

// TestRefused: a data plane that takes nothing keeps the loop from being ready.
func TestRefused(t *testing.T) {
	dp := &plane{result: ir.ApplyResult{Err: errors.New("no memory")}}
	l := newLoop(t, controllers.Options{Source: &source{in: gateways(80)}, DataPlane: dp})
	l.Turn(t.Context())
	if programmed(l.State().Report, 0) != "False Pending" {
		t.Error(programmed(l.State().Report, 0))
	}
	select {
	case <-l.Ready():
		t.Error("ready")
	default:
	}
	dp.result = ir.ApplyResult{}
	l.Turn(t.Context())
	<-l.Ready()
}

// TestAssigned: Gateways keep what the pool gave them.
func TestAssigned(t *testing.T) {
	src := &source{in: gateways(82, 83)}
	src.in.Options.Addresses = compile.Addresses{Pool: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/29")}}
	l := newLoop(t, controllers.Options{Source: src, DataPlane: &plane{}})
	l.Turn(t.Context())
	before := l.State().Report.Assigned
	more := gateways(80, 81)
	src.in.Gateways = append(more.Gateways, src.in.Gateways...)
	l.Turn(t.Context())
	after := l.State().Report.Assigned
	for _, name := range []string{"g82", "g83"} {
		k := types.NamespacedName{Namespace: "default", Name: name}
		if !before[k].IsValid() || before[k] != after[k] {
			t.Errorf("%s had %s and has %s", name, before[k], after[k])
		}
	}
	if len(after) != 4 {
		t.Errorf("assigned: %v", after)
	}
}

// TestRun turns at once, batches storms, and ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dp := &source{in: gateways(80), changed: make(chan struct{}, 1)}, &plane{}
		l := newLoop(t, controllers.Options{Source: src, DataPlane: dp})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		start := time.Now()
		go func() { ended <- l.Run(ctx) }()
		synctest.Wait()
		if n := src.turns(); n != 1 {
			t.Fatalf("%d turns at the start", n)
		}
		time.Sleep(3 * time.Second)
		src.mu.Lock()
		src.in = gateways(80, 81)
		src.mu.Unlock()
		src.changed <- struct{}{}
		synctest.Wait()
		if n, got := src.turns(), dp.after(start); n != 2 || !slices.Equal(got, []int{0, 3}) {
			t.Errorf("%d turns after a change, applied at %v", n, got)
		}
		for range 100 {
			src.changed <- struct{}{}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		turns := src.turns()
		if turns < 3 || turns > 2+11 {
			t.Errorf("%d turns for a storm of 100 ms", turns-2)
		}
		time.Sleep(time.Hour)
		if n := src.turns(); n != turns {
			t.Errorf("%d turns in an idle hour", n-turns)
		}
		close(src.changed) // as a source does when its context ends
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRetry tries again what failed, ever more slowly, and no more once it works.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dp, to := &source{in: gateways(80), changed: make(chan struct{})}, &plane{}, &sink{}
		dp.answer(ir.ApplyResult{Sockets: map[string]error{"0.0.0.0:80": syscall.EADDRINUSE}})
		l := newLoop(t, controllers.Options{Source: src, DataPlane: dp, Sink: to})
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		time.Sleep(100 * time.Second)
		want := []int{0, 1, 3, 7, 15, 31, 61, 91}
		if got := dp.after(start); !slices.Equal(got, want) {
			t.Errorf("tried after %v seconds, want %v", got, want)
		}
		dp.answer(ir.ApplyResult{})
		time.Sleep(time.Hour)
		want = append(want, 121)
		if got := dp.after(start); !slices.Equal(got, want) {
			t.Errorf("tried after %v seconds, want %v", got, want)
		}

		// A status that can't be written is written again, without another Apply.
		to.fail(errors.New("disk full"))
		src.changed <- struct{}{}
		time.Sleep(10 * time.Second)
		told := to.fail(nil)
		time.Sleep(time.Hour)
		if n := to.fail(nil); n != told+1 || len(dp.after(start)) != len(want) {
			t.Errorf("told %d times, then %d; applied %d times", told, n, len(dp.after(start)))
		}
		cancel()
		<-ended
	})
}

// TestLog says each problem once, with its place.
func TestLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	src := &source{in: gateways(80), problems: []compile.Problem{
		{Severity: compile.Error, File: "a.yaml", Line: 3, Message: "bad"},
		{Severity: compile.Warning, Kind: "Service", Namespace: "default", Name: "web", Message: "odd"},
	}}
	l := newLoop(t, controllers.Options{Source: src, DataPlane: &plane{}, Logger: zap.New(core)})
	l.Turn(t.Context())
	l.Turn(t.Context())
	if n := logs.FilterMessage("a.yaml:3: bad").FilterField(zap.String("file", "a.yaml")).FilterField(zap.Int("line", 3)).FilterLevelExact(zapcore.ErrorLevel).Len(); n != 1 {
		t.Errorf("the error is logged %d times", n)
	}
	if n := logs.FilterMessage("x.yaml:7: Service default/web: odd").FilterField(zap.String("object", "Service default/web")).FilterLevelExact(zapcore.WarnLevel).Len(); n != 1 {
		t.Errorf("the warning is logged %d times", n)
	}
	if n := logs.FilterMessage("configuration applied").Len(); n != 1 {
		t.Errorf("%d applications are logged", n)
	}
	src.problems = nil
	l.Turn(t.Context())
	l.Turn(t.Context())
	if n := logs.FilterMessageSnippet("no problem any more").Len(); n != 1 {
		t.Errorf("the end of the problems is logged %d times", n)
	}
}
