package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/node"
)

var resource = schema.GroupResource{Group: v1alpha1.GroupName, Resource: "dataplanes"}

// server is an API server with one DataPlane at most. Of a client it has what a
// reporter needs.
type server struct {
	client.Client

	mu     sync.Mutex
	object *v1alpha1.DataPlane
	writes []string
	serial int
	fail   error
}

func (s *server) Status() client.SubResourceWriter { return statusOf{s: s} }

// statusOf writes the object's status.
type statusOf struct {
	client.SubResourceWriter
	s *server
}

func (s *server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail != nil:
		return s.fail
	case s.object != nil:
		return apierrors.NewAlreadyExists(resource, o.GetName())
	}
	s.serial++
	o.SetUID(types.UID(fmt.Sprint("uid", s.serial)))
	o.SetResourceVersion(fmt.Sprint(s.serial))
	s.object = o.DeepCopyObject().(*v1alpha1.DataPlane)
	s.writes = append(s.writes, "create")
	return nil
}

func (w statusOf) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail != nil:
		return s.fail
	case s.object == nil || s.object.UID != o.GetUID():
		return apierrors.NewNotFound(resource, o.GetName())
	}
	s.serial++
	o.SetResourceVersion(fmt.Sprint(s.serial))
	s.object = o.DeepCopyObject().(*v1alpha1.DataPlane)
	s.writes = append(s.writes, "patch")
	return nil
}

func (s *server) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var do client.DeleteOptions
	do.ApplyOptions(opts)
	switch {
	case s.object == nil:
		return apierrors.NewNotFound(resource, o.GetName())
	case *do.Preconditions.UID != s.object.UID || *do.Preconditions.ResourceVersion != s.object.ResourceVersion:
		return apierrors.NewConflict(resource, o.GetName(), errors.New("it is another one"))
	}
	s.object = nil
	s.writes = append(s.writes, "delete")
	return nil
}

// took returns the writes since the last call.
func (s *server) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.writes
	s.writes = nil
	return out
}

// now returns the object.
func (s *server) now() *v1alpha1.DataPlane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

// work is a data plane with one loop.
type work struct {
	mu          sync.Mutex
	connections int64
	busy        time.Duration // each second
	spent       time.Duration
	last        time.Time
	clusters    []node.Cluster
	detail      func(string) (node.Detail, bool) // may be nil
}

func (w *work) Sample() node.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !w.last.IsZero() {
		w.spent += time.Duration(now.Sub(w.last).Seconds() * float64(w.busy))
	}
	w.last = now
	return node.Sample{Connections: w.connections, Loops: []node.Loop{{Connections: 2 * w.connections, Busy: w.spent}}, Clusters: slices.Values(w.clusters), Detail: w.detail, TimeOf: tens}
}

// tens is what the buckets stand for in these tests.
func tens(bucket int) time.Duration { return time.Duration(bucket) * 10 * time.Millisecond }

func (w *work) set(connections int64, busy time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections, w.busy = connections, busy
}

// run runs a reporter in a bubble of simulated time.
func run(t *testing.T, f func(*server, *work, *node.Reporter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, w := &server{}, &work{}
		r, err := node.New(node.Options{
			Client: s, Name: "one", NodeName: "one", ControllerName: "c", Version: "v1", Started: time.Now(), Stats: w, Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		f(s, w, r)
		stop()
		<-done
	})
}

func gateways(generation int64) []*compile.GatewayReport {
	return []*compile.GatewayReport{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gw"}, Generation: generation}}
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// What is served is told at once, and not more often than once a second; traffic
// is told every 10 s at most; when nothing changes nothing is written.
func TestPace(t *testing.T) {
	run(t, func(s *server, w *work, r *node.Reporter) {
		wait(time.Minute)
		same(t, "before the first turn", s.took())
		r.Observe(&node.Observation{Hash: "a", Applied: time.Now(), Gateways: gateways(1), NodeUID: "node-uid"})
		wait(0)
		same(t, "first", s.took(), "create", "patch")
		if o := s.now().OwnerReferences; len(o) != 1 || o[0].UID != "node-uid" || o[0].Kind != "Node" {
			t.Errorf("owners %v", o)
		}
		wait(10 * time.Minute)
		same(t, "idle", s.took())

		for g := range int64(5) {
			r.Observe(&node.Observation{Hash: fmt.Sprint("b", g), Gateways: gateways(2 + g)})
			wait(100 * time.Millisecond)
		}
		same(t, "five changes in half a second", s.took(), "patch")
		wait(time.Second)
		same(t, "the last of them", s.took(), "patch")
		if g := s.now().Status.Gateways; len(g) != 1 || g[0].Generation != 6 {
			t.Errorf("it says %v", g)
		}

		w.set(1000, 500*time.Millisecond)
		wait(time.Minute)
		if n := len(s.took()); n < 1 || n > 3 {
			t.Errorf("%d writes for traffic that begins and goes on", n)
		}
		if st := s.now().Status; st.Connections != 1000 || st.BusyPercent != 50 || st.Loops[0].BusyPercent != 50 || st.Loops[0].Connections != 2000 {
			t.Errorf("it says %+v", st)
		}
		for i := range 30 {
			w.set(int64(100*(i+1)), time.Duration(i)*30*time.Millisecond)
			wait(2 * time.Second)
		}
		if n := len(s.took()); n < 3 || n > 7 {
			t.Errorf("%d writes in a minute of changing traffic", n)
		}
		w.set(3001, 29*30*time.Millisecond)
		wait(time.Minute)
		s.took()
		for i := range int64(30) {
			w.set(3001+i, 29*30*time.Millisecond)
			wait(2 * time.Second)
		}
		same(t, "one connection more or less", s.took())
	})
}

// The object is removed at the end, and made anew when somebody removes it; that
// of a process that took over stays.
func TestObject(t *testing.T) {
	var s *server
	run(t, func(x *server, _ *work, r *node.Reporter) {
		s = x
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(0)
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1), Object: s.now()})
		wait(0)
		same(t, "made", s.took(), "create", "patch")
		s.mu.Lock()
		s.object = nil
		s.mu.Unlock()
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(2 * time.Second)
		same(t, "somebody removed it", s.took(), "create", "patch")
	})
	same(t, "the end", s.took(), "delete")

	run(t, func(x *server, _ *work, r *node.Reporter) {
		s = x
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(0)
		s.mu.Lock()
		s.object.ResourceVersion = "another wrote it"
		s.mu.Unlock()
		s.took()
	})
	same(t, "another took over", s.took())

	run(t, func(x *server, _ *work, r *node.Reporter) {
		old := &v1alpha1.DataPlane{}
		old.Name, old.UID, old.ResourceVersion = "one", "old", "7"
		x.object = old.DeepCopy()
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1), Object: old})
		wait(0)
		same(t, "of the process before", x.took(), "patch")
	})
}

// Two releases may have taken one name: the object stays with who has it, and the
// other one takes its place when it is gone.
func TestAnotherController(t *testing.T) {
	run(t, func(s *server, _ *work, r *node.Reporter) {
		theirs := &v1alpha1.DataPlane{}
		theirs.Name, theirs.UID, theirs.ResourceVersion, theirs.Status.ControllerName = "one", "theirs", "7", "example.com/other"
		s.object = theirs.DeepCopy()
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1), Object: theirs})
		wait(time.Minute)
		same(t, "while it is there", s.took())
		s.mu.Lock()
		s.object = nil
		s.mu.Unlock()
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(10 * time.Second)
		same(t, "when it is gone", s.took(), "create", "patch")
	})
}

// An API server that refuses is asked again after a while.
func TestFailure(t *testing.T) {
	run(t, func(s *server, _ *work, r *node.Reporter) {
		s.fail = errors.New("away")
		r.Observe(&node.Observation{Hash: "a", Gateways: gateways(1)})
		wait(12 * time.Second)
		same(t, "away", s.took())
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		wait(6 * time.Second)
		same(t, "back", s.took(), "create", "patch")
	})
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]node.Options{
		"no client": {Name: "one", Now: time.Now}, "no name": {Client: &server{}, Now: time.Now}, "no clock": {Client: &server{}, Name: "one"},
	} {
		if _, err := node.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
