package status

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// Objects gives the input that the last report is about.
type Objects interface {
	Current() compile.Input
}

// KubeOptions configure a [Kube].
type KubeOptions struct {
	Client  client.Client
	Objects Objects
	// ControllerName is the name in the entries of routes that are ours.
	ControllerName gatewayv1.GatewayController
	// Services says to keep a Service for each Gateway.
	Services bool
	// DataPlane is the name of the DataPlane of this process; without one the others
	// are not asked.
	DataPlane string
	// Writers bounds how many writes are under way at once; default 16.
	Writers int
	// Now is the clock; default [time.Now].
	Now func() time.Time
	// Logger may be nil.
	Logger *zap.Logger
}

// Kube writes the status of objects to their API server, and keeps a Service for
// each Gateway. It takes reports all the time, and writes while [Kube.Run] runs:
// in the process that leads.
type Kube struct {
	o    KubeOptions
	log  *zap.Logger
	last atomic.Pointer[turn]
	wake chan struct{}
	// told are the Gateways as the last report had them, and behind is since when a
	// data plane is behind. They are Write's.
	told   map[types.NamespacedName]*compile.GatewayReport
	behind map[types.NamespacedName]lag
}

// turn is a report with the objects that it is about.
type turn struct {
	report *compile.Report
	input  compile.Input
	// held is until when a Gateway's status is kept back.
	held map[types.NamespacedName]time.Time
	live live
}

// NewKube returns a Kube.
func NewKube(o KubeOptions) (*Kube, error) {
	if o.Client == nil || o.Objects == nil || o.ControllerName == "" {
		return nil, errors.New("a status writer needs a client, objects and a controller name")
	}
	if o.Writers == 0 {
		o.Writers = 16
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of a clock that is passed in
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Kube{
		o: o, log: o.Logger, wake: make(chan struct{}, 1),
		told: make(map[types.NamespacedName]*compile.GatewayReport), behind: make(map[types.NamespacedName]lag),
	}, nil
}

// Write takes a report. It never waits for the API server.
func (k *Kube) Write(_ context.Context, r *compile.Report) error {
	in := k.o.Objects.Current()
	if k.o.DataPlane != "" {
		r = k.across(r, &in)
	}
	k.last.Store(&turn{r, in, k.held(r), k.lively(&in)})
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return nil
}

// outcome is what came of a write.
type outcome struct {
	key    subjectKey
	says   any
	live   string
	base   string // the version that the source had
	object client.Object
	err    error
}

// rest is the least time between two turns that are taken into the plan: each is
// compared with all objects, and in a storm there are many.
const rest = 50 * time.Millisecond

// Run writes until ctx ends, and until the writes that are under way have ended.
// It checks everything first.
func (k *Kube) Run(ctx context.Context) {
	p := planner{progress: make(map[subjectKey]*progress), now: k.o.Now}
	outcomes := make(chan outcome, k.o.Writers)
	busy := 0
	var taken time.Time // when a turn was
	var events herald
	var writers sync.WaitGroup
	defer writers.Wait()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			for ; busy > 0; busy-- {
				<-outcomes
			}
			return
		case <-k.wake:
		case <-again.C:
		case o := <-outcomes:
			busy--
			k.tell(&p, o)
		drain:
			for {
				select {
				case o := <-outcomes:
					busy--
					k.tell(&p, o)
				default:
					break drain
				}
			}
		}
		t := k.last.Load()
		if t == nil || busy == k.o.Writers {
			continue
		}
		var wait time.Duration
		if p.turn != t {
			now := k.o.Now()
			if wait = taken.Add(rest).Sub(now); wait <= 0 {
				p.take(t, k.subjects(t, p.subjects))
				wait, taken = 0, now
				if news := events.news(now, t, string(k.o.ControllerName)); len(news) > 0 {
					writers.Go(func() { k.proclaim(ctx, news) })
				}
			}
		}
		jobs, due := p.next(k.o.Writers - busy)
		if wait == 0 || due > 0 && due < wait {
			wait = due
		}
		for _, j := range jobs {
			busy++
			go func() { outcomes <- k.do(ctx, j) }()
		}
		again.Stop()
		if wait > 0 {
			again.Reset(wait)
		}
	}
}

// do writes one object.
func (k *Kube) do(ctx context.Context, j job) outcome {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	object, err := j.write(ctx, k.o.Client)
	return outcome{key: j.key, says: j.says, live: j.live, base: j.base, object: object, err: err}
}

// tell takes what came of a write into the plan, and says what went wrong.
func (k *Kube) tell(p *planner, o outcome) {
	failures := p.done(o, jitter)
	switch {
	case o.err == nil, apierrors.IsConflict(o.err), apierrors.IsNotFound(o.err), errors.Is(o.err, context.Canceled):
	case failures&(failures-1) == 0: // 1, 2, 4, 8, ...
		k.log.Warn("a status could not be written", zap.String("object", o.key.kind+" "+o.key.String()),
			zap.Int("failures", failures), zap.Error(o.err))
	}
}

// jitter keeps replicas and objects from trying again at the same moment.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
