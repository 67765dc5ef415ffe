package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// patience is how long a Gateway waits for an object that it names and that the
// API server does not give an answer about.
const patience = 5 * time.Second

// reference is a kind of which only those objects are followed that Gateways
// name.
type reference interface { //nolint:interfacebloat // what one kind costs, in one place
	// names returns the objects that a Gateway names.
	names(*gatewayv1.Gateway) []types.NamespacedName
	// want says which objects to follow from now on.
	want(w watcher, names map[types.NamespacedName]bool)
	// waiting tells whether it is not known yet what the object is.
	waiting(types.NamespacedName) bool
	// fill puts the objects into an input.
	fill(*compile.Input)
}

// watcher is what it takes to follow single objects.
type watcher struct {
	// run runs a function that ends with its context, until stop is called.
	run     func(func(context.Context)) (stop func())
	client  client.WithWatch
	changed func()
	log     *zap.Logger
}

// named follows single objects of one kind, each with a watch of its own: the
// API server then sends nothing else, and access can be granted by name.
type named[T object] struct {
	kind  string
	new   func() T
	list  func() client.ObjectList
	strip func(T)
	of    func(*gatewayv1.Gateway) []types.NamespacedName
	put   func(*compile.Input, []T)

	mu      sync.Mutex
	watches map[types.NamespacedName]*single[T]
}

func (n *named[T]) names(gw *gatewayv1.Gateway) []types.NamespacedName { return n.of(gw) }

func (n *named[T]) want(w watcher, names map[types.NamespacedName]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, s := range n.watches {
		if !names[key] {
			s.stop()
			delete(n.watches, key)
		}
	}
	for key := range names {
		if n.watches[key] != nil {
			continue
		}
		if n.watches == nil {
			n.watches = make(map[types.NamespacedName]*single[T])
		}
		s := &single[T]{kind: n.kind, key: key, strip: n.strip, changed: w.changed, log: w.log}
		n.watches[key] = s
		s.start(w, n.new(), n.list)
	}
}

func (n *named[T]) waiting(key types.NamespacedName) bool {
	n.mu.Lock()
	s := n.watches[key]
	n.mu.Unlock()
	return s != nil && !s.settled()
}

func (n *named[T]) fill(in *compile.Input) {
	n.mu.Lock()
	watches := slices.Collect(maps.Values(n.watches))
	n.mu.Unlock()
	var none T
	var objects []T
	for _, s := range watches {
		if o := s.get(); o != none {
			objects = append(objects, o)
		}
	}
	compile.Sort(objects)
	n.put(in, objects)
}

// single follows one object. It is the store of a reflector.
type single[T object] struct {
	kind    string
	key     types.NamespacedName
	strip   func(T)
	changed func()
	log     *zap.Logger
	stop    func()

	mu     sync.Mutex
	object T
	known  bool // the API server has answered, or did not for too long
	failed bool // the last answer was an error
}

func (s *single[T]) start(w watcher, empty T, list func() client.ObjectList) {
	c := w.client
	options := func(o metav1.ListOptions) *client.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.key.Name).String()
		return &client.ListOptions{Namespace: s.key.Namespace, Raw: &o}
	}
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := list()
			err := c.List(ctx, l, options(o))
			s.answered(err)
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := c.Watch(ctx, list(), options(o))
			s.answered(err)
			return w, err
		},
	}
	r := toolscache.NewReflectorWithOptions(lw, empty, s, toolscache.ReflectorOptions{Name: s.kind + " " + s.key.String()})
	s.stop = w.run(func(ctx context.Context) {
		late := time.AfterFunc(patience, s.settle)
		defer late.Stop()
		r.RunWithContext(ctx)
	})
}

// answered notes an error of the API server, once.
func (s *single[T]) answered(err error) {
	s.mu.Lock()
	first := err != nil && !s.failed
	s.failed = err != nil
	s.mu.Unlock()
	if first {
		s.log.Warn("an object that a Gateway names can't be read", zap.String("object", s.kind+" "+s.key.String()), zap.Error(err))
	}
}

// settle ends the waiting.
func (s *single[T]) settle() {
	s.mu.Lock()
	was := s.known
	s.known = true
	s.mu.Unlock()
	if !was {
		s.changed()
	}
}

func (s *single[T]) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *single[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

// put takes the object as it is now; the zero value says that there is none.
func (s *single[T]) put(o T) {
	var none T
	if o != none {
		o.SetManagedFields(nil)
		s.strip(o)
	}
	s.mu.Lock()
	same := s.known && o == s.object || o != none && s.object != none &&
		o.GetUID() == s.object.GetUID() && o.GetResourceVersion() == s.object.GetResourceVersion()
	if !same {
		s.object = o
	}
	s.known = true
	s.mu.Unlock()
	if !same {
		s.changed()
	}
}

// Add implements [toolscache.ReflectorStore].
func (s *single[T]) Add(o any) error { return s.Update(o) }

// Update implements [toolscache.ReflectorStore].
func (s *single[T]) Update(o any) error {
	if x, ok := o.(T); ok {
		s.put(x)
	}
	return nil
}

// Delete implements [toolscache.ReflectorStore].
func (s *single[T]) Delete(any) error {
	var none T
	s.put(none)
	return nil
}

// Replace implements [toolscache.ReflectorStore].
func (s *single[T]) Replace(list []any, _ string) error {
	var now T
	for _, o := range list {
		if x, ok := o.(T); ok {
			now = x
		}
	}
	s.put(now)
	return nil
}

// Resync implements [toolscache.ReflectorStore].
func (s *single[T]) Resync() error { return nil }
