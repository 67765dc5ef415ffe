package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
)

// Options configure a [Source].
type Options struct {
	// Config says how to reach the API server.
	Config *rest.Config
	// Compile is passed on in the input. BundleVersions is always set.
	Compile compile.Options
	// NodeName is the Node whose addresses are put in Compile.Addresses.Node.
	// Empty leaves that as it is.
	NodeName string
	// Nodes says to follow the Nodes though none is named: to know which of the
	// data planes are alive.
	Nodes bool
	// Logger may be nil.
	Logger *zap.Logger
}

// Source follows the objects of an API server. Watch is called once; Input and
// Current may be called from one goroutine at a time.
type Source struct {
	opts   Options
	log    *zap.Logger
	cache  cache.Cache
	client client.WithWatch

	crds       crds
	kinds      []kind
	references []reference

	wake    chan struct{} // something changed; for the loop
	recheck chan struct{} // a CRD came or went
	pending atomic.Bool   // later has been called
	watcher watcher

	mu        sync.Mutex
	following map[kind]func() bool // what is followed, and whether it is in sync

	last compile.Input
}

// Open returns a source. It does not reach out to the API server yet.
func Open(o Options) (*Source, error) {
	if o.Config == nil {
		return nil, errors.New("open a source: no API server is given")
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Compile.ControllerName == "" {
		o.Compile.ControllerName = compile.ControllerName
	}
	s := &Source{
		opts: o, log: o.Logger, kinds: kinds(o.NodeName != "" || o.Nodes), references: references(),
		wake: make(chan struct{}, 1), recheck: make(chan struct{}, 1),
		following: make(map[kind]func() bool),
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, gatewayv1.Install, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("open a source: %w", err)
		}
	}
	web, err := rest.HTTPClientFor(o.Config)
	if err != nil {
		return nil, fmt.Errorf("open a source: %w", err)
	}
	if err := s.connect(scheme, web); err != nil {
		return nil, fmt.Errorf("open a source: %w", err)
	}
	return s, nil
}

func (s *Source) connect(scheme *runtime.Scheme, web *http.Client) error {
	mapper, err := apiutil.NewDynamicRESTMapper(s.opts.Config, web)
	if err != nil {
		return err
	}
	never := time.Duration(0)
	if s.cache, err = cache.New(s.opts.Config, cache.Options{
		HTTPClient: web, Scheme: scheme, Mapper: mapper, DefaultTransform: s.strip, SyncPeriod: &never,
	}); err != nil {
		return err
	}
	s.client, err = client.NewWithWatch(s.opts.Config, client.Options{HTTPClient: web, Scheme: scheme, Mapper: mapper})
	return err
}

// strip removes from an object what nobody reads, before it is kept.
func (s *Source) strip(o any) (any, error) {
	stripCRD(o)
	for _, k := range s.kinds {
		k.strip(o)
	}
	return o, nil
}

// Client returns a client for the kinds of the source. It reads from the API
// server, not from the cache.
func (s *Source) Client() client.Client { return s.client }

// Watch follows the objects until ctx ends. It returns when all objects that
// exist are known, however long the API server is out of reach.
func (s *Source) Watch(ctx context.Context) (<-chan struct{}, error) {
	s.watcher = watcher{client: s.client, changed: s.changed, log: s.log, run: func(f func(context.Context)) func() {
		one, stop := context.WithCancel(ctx)
		go f(one)
		return stop
	}}
	ended := make(chan error, 1)
	go func() { ended <- s.cache.Start(ctx) }()
	informer, err := s.cache.GetInformer(ctx, crdObject(), cache.BlockUntilSynced(false))
	for err != nil {
		s.log.Warn("the API server does not answer", zap.Error(err))
		if !sleep(ctx, time.Second) {
			return nil, ctx.Err()
		}
		informer, err = s.cache.GetInformer(ctx, crdObject(), cache.BlockUntilSynced(false))
	}
	synced, err := s.crds.follow(ctx, informer, s.again)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, synced); err != nil {
		return nil, err
	}
	missing := s.followKinds(ctx)
	if err := await(ctx, s.synced); err != nil {
		return nil, err
	}
	if err := await(ctx, s.settled); err != nil {
		return nil, err
	}
	go s.keep(ctx, missing)
	return s.wake, nil
}

// changed tells the loop that there may be a new input.
func (s *Source) changed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// later tells the loop in a while. Calls until then are one.
func (s *Source) later() {
	const while = 50 * time.Millisecond
	if s.pending.CompareAndSwap(false, true) {
		time.AfterFunc(while, func() {
			s.pending.Store(false)
			s.changed()
		})
	}
}

// again has the kinds compared with the CRDs.
func (s *Source) again() {
	select {
	case s.recheck <- struct{}{}:
	default:
	}
}

// keep follows kinds as their CRDs come and go. pending tells that one of them
// could not be followed.
func (s *Source) keep(ctx context.Context, pending bool) {
	const first, most = 200 * time.Millisecond, 10 * time.Second
	pause := first
	for {
		var retry <-chan time.Time
		if pending {
			retry = time.After(pause)
			pause = min(2*pause, most)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.recheck:
			pause = first
		case <-retry:
		}
		pending = s.followKinds(ctx)
		s.changed() // the versions count, too
	}
}

// followKinds starts to follow the kinds that exist, and ends it for those that
// don't any more. It tells whether one that exists could not be followed, since
// the API server does not serve it yet.
func (s *Source) followKinds(ctx context.Context) (pending bool) {
	for _, k := range s.kinds {
		name := k.about()
		exists := name.crd == "" || s.crds.has(name.crd)
		s.mu.Lock()
		follows := s.following[k] != nil
		s.mu.Unlock()
		switch {
		case exists && !follows:
			informer, err := s.cache.GetInformer(ctx, k.object(), cache.BlockUntilSynced(false))
			var synced func() bool
			if err == nil {
				synced, err = k.follow(ctx, informer, bell{s.changed, s.later})
			}
			if err != nil {
				s.log.Debug("a kind is not served yet", zap.String("kind", name.kind), zap.Error(err))
				pending = true
				continue
			}
			s.mu.Lock()
			s.following[k] = synced
			s.mu.Unlock()
			s.log.Debug("following", zap.String("kind", name.kind))
		case !exists && follows:
			s.log.Warn("a kind is gone", zap.String("kind", name.kind), zap.String("crd", name.crd))
			if err := s.cache.RemoveInformer(ctx, k.object()); err != nil {
				s.log.Warn("a kind can't be left", zap.String("kind", name.kind), zap.Error(err))
			}
			k.forget()
			s.mu.Lock()
			delete(s.following, k)
			s.mu.Unlock()
		}
	}
	return pending
}

// synced tells whether all objects of the kinds that are followed are known.
func (s *Source) synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, synced := range s.following {
		if !synced() {
			return false
		}
	}
	return true
}

// settled tells whether everything that Gateways name is known, too.
func (s *Source) settled() bool {
	in := s.collect()
	s.reach(&in)
	return !slices.ContainsFunc(in.Gateways, s.waits)
}

// collect returns what is known of the kinds that are followed whole.
func (s *Source) collect() compile.Input {
	in := compile.Input{Options: s.opts.Compile}
	for _, k := range s.kinds {
		k.fill(&in)
	}
	return in
}

// reach follows what our Gateways name, and nothing else. While one of them
// waits, it is what the last input names, too: that is still in force.
func (s *Source) reach(in *compile.Input) {
	s.want(in, &s.last)
	if !slices.ContainsFunc(in.Gateways, s.waits) {
		s.want(in)
	}
}

// want follows what our Gateways in the inputs name.
func (s *Source) want(inputs ...*compile.Input) {
	for _, r := range s.references {
		names := make(map[types.NamespacedName]bool)
		for _, in := range inputs {
			ours := s.ours(in)
			for _, gw := range in.Gateways {
				if ours[gw.Spec.GatewayClassName] {
					for _, n := range r.names(gw) {
						names[n] = true
					}
				}
			}
		}
		r.want(s.watcher, names)
	}
}

// ours returns the names of our classes.
func (s *Source) ours(in *compile.Input) map[gatewayv1.ObjectName]bool {
	names := make(map[gatewayv1.ObjectName]bool)
	for _, gc := range in.Classes {
		if string(gc.Spec.ControllerName) == s.opts.Compile.ControllerName {
			names[gatewayv1.ObjectName(gc.Name)] = true
		}
	}
	return names
}

// waits tells whether something that the Gateway names is not known yet.
func (s *Source) waits(gw *gatewayv1.Gateway) bool {
	for _, r := range s.references {
		if slices.ContainsFunc(r.names(gw), r.waiting) {
			return true
		}
	}
	return false
}

// Input returns the objects. A Gateway that names a Secret that is not known yet
// stays as it was until it is: else it would be refused for a moment.
func (s *Source) Input() (compile.Input, []compile.Problem) {
	in := s.collect()
	s.reach(&in)
	if slices.ContainsFunc(in.Gateways, s.waits) {
		s.hold(&in)
	}
	for _, r := range s.references {
		r.fill(&in)
	}
	in.Options.BundleVersions = s.crds.bundle()
	in.Options.MissingCRDs = nil
	var problems []compile.Problem
	for _, n := range s.missing() {
		in.Options.MissingCRDs = append(in.Options.MissingCRDs, n.crd)
		problems = append(problems, compile.Problem{
			Severity: compile.Warning, Kind: "CustomResourceDefinition", Name: n.crd, Reason: compile.ReasonKindMissing,
			Message: compile.MissingCRDs([]string{n.crd}),
		})
	}
	if s.opts.NodeName != "" {
		in.Options.Addresses.Node = nodeAddresses(nodeNamed(in.Nodes, s.opts.NodeName))
	}
	s.last = in
	return in, problems
}

// hold puts the version of the last input in the place of each Gateway that
// waits.
func (s *Source) hold(in *compile.Input) {
	last := make(map[types.NamespacedName]*gatewayv1.Gateway, len(s.last.Gateways))
	for _, gw := range s.last.Gateways {
		last[client.ObjectKeyFromObject(gw)] = gw
	}
	var held []*gatewayv1.Gateway
	for _, gw := range in.Gateways {
		if s.waits(gw) {
			gw = last[client.ObjectKeyFromObject(gw)]
		}
		if gw != nil {
			held = append(held, gw)
		}
	}
	in.Gateways = held
}

// missing returns the kinds that the cluster lacks.
func (s *Source) missing() []about {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []about
	for _, k := range s.kinds {
		if s.following[k] == nil {
			out = append(out, k.about())
		}
	}
	return out
}

// Current returns the last input.
func (s *Source) Current() compile.Input { return s.last }

// Locate does nothing: objects of an API server are in no file.
func (s *Source) Locate(*compile.Problem) {}

// await waits until done is true. It returns the context's error when that ends
// first.
func await(ctx context.Context, done func() bool) error {
	for !done() {
		if !sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// sleep tells whether the pause passed before ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
