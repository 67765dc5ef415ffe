package envtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/kube"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/pressure"
)

// parameters makes GatewayParameters, which are removed at the end.
func (w *world) parameters(name string, spec v1alpha1.GatewayParametersSpec) *v1alpha1.GatewayParameters {
	w.Helper()
	p := &v1alpha1.GatewayParameters{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name}, Spec: spec}
	w.create(p)
	w.Cleanup(func() { _ = w.Delete(context.Background(), p.DeepCopy()) }) // it may be gone
	return p
}

// lines collects what an access log writes.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), `"path":"`+path+`"`)
}

// TestParametersTakeEffect edits the parameters of a Gateway and of its class, and
// waits until a client sees it. One connection is used all the while.
func TestParametersTakeEffect(t *testing.T) {
	var out lines
	log, err := accesslog.New(accesslog.Options{Output: &out, Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	b := newBench(t, func(o *dataplane.Options) { o.AccessLog, o.MaxConnections = log, 1000 })
	b.on("web", 1, v1alpha1.BackendPolicySpec{}, func(s *subject, _ []*origin, _ *origin) {
		gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: s.world.name, Name: "gw"}}
		s.refresh(gw)
		own := s.parameters("own", v1alpha1.GatewayParametersSpec{
			Client:    &v1alpha1.ClientParameters{Limits: &v1alpha1.HeadLimits{HeaderCount: pointer[int32](8)}},
			AccessLog: &v1alpha1.AccessLogParameters{Mode: pointer(v1alpha1.AccessLogOff)},
		})
		fields := func(n int) func(*http.Request) {
			return func(r *http.Request) {
				for i := range n {
					r.Header.Set(fmt.Sprint("X-", i), "1")
				}
			}
		}
		if got := s.ask("/before", fields(50)).StatusCode; got != http.StatusOK {
			t.Errorf("50 fields are answered %d", got)
		}
		s.eventually(func() string { return unless(out.has("/before"), true) })

		// The Gateway names its parameters: fewer fields, and no log.
		update(s.world, gw, func(g *gatewayv1.Gateway) {
			g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
				Group: v1alpha1.GroupName, Kind: "GatewayParameters", Name: "own",
			}}
		})
		s.wantGateway(gw, programmed(2))
		refused := newCaller(t, s.port, s.host())
		res, err := refused.ask(s.host(), "/", fields(50))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("50 fields are answered %d", res.StatusCode)
		}
		s.ask("/unlogged")

		// They are edited: the limit is above what the process has, and errors are logged.
		update(s.world, own, func(p *v1alpha1.GatewayParameters) {
			p.Spec.Client.Limits.HeaderCount = pointer[int32](300)
			p.Spec.AccessLog.Mode = pointer(v1alpha1.AccessLogErrors)
		})
		s.socket(func(k *ir.Socket) bool { return k.Client.MaxHeaders == 300 && k.AccessLog.Mode == ir.LogErrors })
		if got := s.ask("/fine", fields(200)).StatusCode; got != http.StatusOK {
			t.Errorf("200 fields are answered %d", got)
		}
		if res, err := s.client.ask("nobody.example.com", "/error"); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("a host that nobody serves: %v, %v", res, err)
		} else {
			_, _ = io.Copy(io.Discard, res.Body)
		}
		s.eventually(func() string { return unless(out.has("/error"), true) })
		if out.has("/unlogged") || out.has("/fine") {
			t.Error("what is not to be logged is")
		}

		// What a process has once counts in the parameters of the class only.
		update(s.world, own, func(p *v1alpha1.GatewayParameters) { p.Spec.Workers = pointer[int32](7) })
		s.eventually(func() string {
			s.refresh(gw)
			for _, c := range gw.Status.Conditions {
				if c.Type == "Accepted" && c.Status == "True" && strings.Contains(c.Message, "spec.workers: this counts in the parameters of a GatewayClass only") {
					return ""
				}
			}
			return fmt.Sprintf("the Gateway says %v", gw.Status.Conditions)
		})
	})
	classParameters(b)
	if n := b.client.dials.Load(); n != 1 {
		t.Errorf("the client made %d connections, want 1", n)
	}
}

// classParameters edits what a class says of the process.
func classParameters(b *bench) {
	gc := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: b.world.name}}
	b.refresh(gc)
	of := b.parameters("class", v1alpha1.GatewayParametersSpec{
		Workers: pointer[int32](2), Pressure: &v1alpha1.ProcessPressure{MaxConnections: pointer[int32](50), MemoryLimit: pointer(v1alpha1.ByteSize("64Gi"))},
	})
	namespace := gatewayv1.Namespace(b.world.name)
	update(b.world, gc, func(c *gatewayv1.GatewayClass) {
		c.Spec.ParametersRef = &gatewayv1.ParametersReference{Group: v1alpha1.GroupName, Kind: "GatewayParameters", Namespace: &namespace, Name: "class"}
	})
	limit := func(want pressure.Usage) {
		b.Helper()
		b.eventually(func() string { return unless(b.server.Guard().Limit, want) })
	}
	applied := func(want string) {
		b.Helper()
		b.eventually(func() string {
			b.refresh(gc)
			i := slices.IndexFunc(gc.Status.Conditions, func(c metav1.Condition) bool { return c.Type == compile.ConditionParametersApplied })
			if i < 0 || !strings.HasPrefix(string(gc.Status.Conditions[i].Status)+" "+gc.Status.Conditions[i].Message, want) {
				return fmt.Sprintf("the class says %v, want %s", gc.Status.Conditions, want)
			}
			return ""
		})
	}
	asked := func(want int) {
		b.Helper()
		in, err := kube.Classes(b.ctx, b.config, compile.Options{ControllerName: string(b.controller)})
		if err != nil {
			b.Fatal(err)
		}
		if snap, _ := compile.Compile(in); snap.Process.Workers != want {
			b.Errorf("a process that starts would have %d loops, want %d", snap.Process.Workers, want)
		}
	}
	limit(pressure.Usage{Connections: 50, Memory: 64 << 30})
	applied("True The parameters are in effect")
	asked(2)
	update(b.world, of, func(p *v1alpha1.GatewayParameters) {
		p.Spec.Workers, p.Spec.Pressure.MaxConnections = pointer[int32](4), pointer[int32](60)
	})
	limit(pressure.Usage{Connections: 60, Memory: 64 << 30})
	applied("False workers: 4 is asked for, the process runs with 2")
	asked(4)
	if res, err := b.client.ask("nobody.example.com", "/"); err != nil || res.StatusCode != http.StatusNotFound {
		b.Errorf("the connection that was open all the while: %v, %v", res, err)
	}
	update(b.world, of, func(p *v1alpha1.GatewayParameters) { p.Spec = v1alpha1.GatewayParametersSpec{} })
	limit(pressure.Usage{Connections: 1000})
	applied("True The parameters are in effect")
	asked(0)
}

// socket waits until the data plane has a socket as it should be.
func (b *bench) socket(is func(*ir.Socket) bool) {
	b.Helper()
	b.eventually(func() string {
		snap, _ := b.server.Snapshot()
		for _, k := range snap.Sockets {
			if is(k) {
				return ""
			}
		}
		return "the data plane does not get what the parameters say"
	})
}
