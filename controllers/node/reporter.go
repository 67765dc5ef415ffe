package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// How often the data plane is sampled, and the object written: at once when what
// is served changes, but not in a row; and at most every 10 s for what changes
// with the traffic.
const (
	DefaultEvery  = 2 * time.Second
	DefaultPace   = 10 * time.Second
	structurePace = time.Second
	failurePause  = 5 * time.Second
)

// Options configure a [Reporter].
type Options struct {
	Client client.Client
	// Name is the object's name.
	Name string
	// NodeName is the Node that the object belongs to; empty for none.
	NodeName string
	// ControllerName is the controllerName of the classes that are served.
	ControllerName string
	// Version is the program's.
	Version string
	// Started is when the process began.
	Started time.Time
	// Stats samples the data plane; nil says nothing of its work.
	Stats Stats
	// Every is how often it is sampled; default [DefaultEvery].
	Every time.Duration
	// Pace is the least time between two writes of what changes with the traffic;
	// default [DefaultPace].
	Pace time.Duration
	// Now is the clock.
	Now func() time.Time
	// Logger may be nil.
	Logger *zap.Logger
}

// Reporter writes the DataPlane object of this process. Observe may be called
// from any goroutine; Run is for one.
type Reporter struct {
	o    Options
	log  *zap.Logger
	last atomic.Pointer[Observation]
	wake chan struct{}

	// The rest is Run's.
	meter     meter
	shown     types.UID           // of the object that the source had last
	have      *v1alpha1.DataPlane // as the API server has it; nil when it has none, or it is not known
	written   time.Time
	notBefore time.Time // after a failure
	failures  int
}

// New returns a Reporter that writes nothing until [Reporter.Run].
func New(o Options) (*Reporter, error) {
	if o.Client == nil || o.Name == "" || o.Now == nil {
		return nil, errors.New("a reporter needs a client, a name and a clock")
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Pace == 0 {
		o.Pace = DefaultPace
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Reporter{o: o, log: o.Logger, wake: make(chan struct{}, 1)}, nil
}

// Observe takes what the control plane found.
func (r *Reporter) Observe(o *Observation) {
	r.last.Store(o)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run reports until ctx ends, and removes the object then.
func (r *Reporter) Run(ctx context.Context) {
	sample := time.NewTicker(r.o.Every)
	defer sample.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	due.Stop()
	for {
		select {
		case <-ctx.Done():
			r.remove()
			return
		case <-sample.C:
			if r.o.Stats != nil {
				r.meter.take(r.o.Now(), r.o.Stats.Sample())
			}
		case <-r.wake:
		case <-due.C:
		}
		if wait := r.step(ctx); wait > 0 {
			due.Reset(wait)
		}
	}
}

// step writes what is due, and returns how long to wait for what is not.
func (r *Reporter) step(ctx context.Context) time.Duration {
	o := r.last.Load()
	if o == nil {
		return 0
	}
	if r.o.Stats != nil && r.meter.at.IsZero() {
		r.meter.take(r.o.Now(), r.o.Stats.Sample())
	}
	r.follow(o.Object)
	now := r.o.Now()
	want := r.status(o)
	pace := r.o.Pace
	switch {
	case r.have == nil || structural(&r.have.Status, want):
		pace = structurePace
	case !r.meter.news(&r.have.Status, want):
		return 0
	}
	next := r.written.Add(pace)
	if r.notBefore.After(next) {
		next = r.notBefore
	}
	if d := next.Sub(now); d > 0 && !(r.written.IsZero() && r.notBefore.IsZero()) {
		return d
	}
	if err := r.write(ctx, o, want); err != nil {
		r.failures++
		r.notBefore = now.Add(failurePause)
		if ctx.Err() == nil && r.failures&(r.failures-1) == 0 {
			r.log.Warn("the DataPlane object could not be written", zap.String("name", r.o.Name), zap.Int("failures", r.failures), zap.Error(err))
		}
		return failurePause
	}
	r.failures, r.notBefore, r.written = 0, time.Time{}, now
	return 0
}

// follow takes the object as the source has it, unless it is older than our last
// write, or another controller's.
func (r *Reporter) follow(seen *v1alpha1.DataPlane) {
	if r.foreign(seen) {
		seen = nil
	}
	switch {
	case seen == nil && r.have != nil && r.shown == r.have.UID:
		r.have = nil // somebody removed it: make another
	case seen != nil && (r.have == nil || r.have.UID != seen.UID && r.shown == r.have.UID):
		r.have = seen
	}
	r.shown = ""
	if seen != nil {
		r.shown = seen.UID
	}
}

// foreign tells whether an object is that of a process with another controllerName.
// Two that write one object would each be told what the other one does.
func (r *Reporter) foreign(seen *v1alpha1.DataPlane) bool {
	return seen != nil && seen.Status.ControllerName != "" && string(seen.Status.ControllerName) != r.o.ControllerName
}

// write brings the object up to date.
func (r *Reporter) write(ctx context.Context, o *Observation, want *v1alpha1.DataPlaneStatus) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if r.have == nil {
		made := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Name: r.o.Name, OwnerReferences: r.owner(o.NodeUID)}}
		if err := r.o.Client.Create(ctx, made); err != nil {
			if apierrors.IsAlreadyExists(err) && r.foreign(o.Object) {
				return fmt.Errorf("it is that of a Headgate with the controller name %s: let --data-plane-name differ, or delete the object if that one is gone: %w",
					o.Object.Status.ControllerName, err)
			}
			if apierrors.IsAlreadyExists(err) {
				// The source will show it.
				return fmt.Errorf("it is there and not known yet: %w", err)
			}
			if meta.IsNoMatchError(err) {
				return fmt.Errorf("install Headgate's CRDs: %w", err)
			}
			return err
		}
		r.have = made
	}
	next := r.have.DeepCopy()
	next.Status = *want.DeepCopy()
	base := r.have.DeepCopy()
	// A zero is told, too: without it the object would have no such field, and its
	// column would be blank.
	base.Status.Connections, base.Status.BusyPercent, base.Status.Faults, base.Status.Troubled = -1, -1, -1, -1
	err := r.o.Client.Status().Patch(ctx, next, client.MergeFrom(base))
	if apierrors.IsNotFound(err) {
		r.have = nil // somebody removed it: make another
	}
	if err != nil {
		return err
	}
	r.have = next
	return nil
}

// owner is the Node, so that the object goes with it.
func (r *Reporter) owner(uid types.UID) []metav1.OwnerReference {
	if r.o.NodeName == "" || uid == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: r.o.NodeName, UID: uid}}
}

// remove takes the object away: the data plane ends.
func (r *Reporter) remove() {
	if r.have == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// A next process that took over has written it meanwhile: then it stays.
	err := r.o.Client.Delete(ctx, r.have, client.Preconditions{UID: &r.have.UID, ResourceVersion: &r.have.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		r.log.Warn("the DataPlane object could not be removed", zap.String("name", r.o.Name), zap.Error(err))
	}
}

// structural tells whether what is served differs, and not only how much work it
// is.
func structural(have, want *v1alpha1.DataPlaneStatus) bool {
	return have.ControllerName != want.ControllerName || have.NodeName != want.NodeName || have.Version != want.Version ||
		have.Started.Unix() != want.Started.Unix() || have.Faults != want.Faults || have.Restart != want.Restart || have.Snapshot.Message != want.Snapshot.Message ||
		!equality.Semantic.DeepEqual(have.Gateways, want.Gateways)
}
