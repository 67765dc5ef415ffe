package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/holdoff"
	"github.com/headgate/headgate/controllers/node"
	"github.com/headgate/headgate/controllers/source/kube"
	"github.com/headgate/headgate/controllers/status"
)

// Election says how the replicas choose the one that writes status.
type Election struct {
	// Namespace and Name are the Lease that the leader holds. Without a name
	// there is no election: this process leads.
	Namespace, Name string
	// Identity names this process, and no other.
	Identity string
	// Lease is how long a leader that falls silent is waited for; default 15 s.
	Lease time.Duration
}

// ManagerOptions are what a [Manager] connects.
type ManagerOptions struct {
	// Config says how to reach the API server.
	Config    *rest.Config
	DataPlane DataPlane
	Compile   compile.Options
	// NodeName is the Node whose addresses are reported where an unspecified one
	// is bound; empty means those in Compile.
	NodeName string
	// Services says to keep a Service for each Gateway.
	Services bool
	Election Election
	Holdoff  holdoff.Options
	// Ports is passed on to the [Loop].
	Ports Ports
	// Report says how this process tells of its data plane.
	Report ReportOptions
	// Now is the clock; default [time.Now].
	Now func() time.Time
	// Logger may be nil.
	Logger *zap.Logger
}

// ReportOptions say how a process tells of its data plane.
type ReportOptions struct {
	// Name is the name of its DataPlane object; without one it tells nothing, and
	// nothing is asked of others.
	Name string
	// NodeName is the Node that the object goes with; empty for none.
	NodeName string
	// Version is the program's.
	Version string
	// Stats samples the data plane; may be nil.
	Stats node.Stats
	// Every and Pace are as in [node.Options].
	Every, Pace time.Duration
}

// Manager is the loop on the objects of an API server, and the election of the
// process that writes their status.
type Manager struct {
	o    ManagerOptions
	log  *zap.Logger
	loop *Loop
	sink *status.Kube
	lock resourcelock.Interface

	source *kube.Source
	report *node.Reporter // nil when nothing is told
	// applied is since when a snapshot is served. They are the loop's.
	hash    string
	applied time.Time
}

// NewManager returns a manager that stands still until [Manager.Run]. It does not
// reach out to the API server yet.
func NewManager(o ManagerOptions) (*Manager, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Compile.ControllerName == "" {
		o.Compile.ControllerName = compile.ControllerName
	}
	if o.Election.Lease == 0 {
		o.Election.Lease = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of a clock that is passed in
	}
	if o.Config != nil && o.Config.Dial == nil {
		o.Config = rest.CopyConfig(o.Config)
		o.Config.Dial = newDialer(o.Logger).dial
	}
	src, err := kube.Open(kube.Options{Config: o.Config, Compile: o.Compile, NodeName: o.NodeName, Nodes: o.Report.Name != "", Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	m := &Manager{o: o, log: o.Logger, source: src}
	m.sink, err = status.NewKube(status.KubeOptions{
		Client: src.Client(), Objects: src, ControllerName: gatewayv1.GatewayController(o.Compile.ControllerName),
		Services: o.Services, DataPlane: o.Report.Name, Now: o.Now, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	m.loop, err = New(Options{Source: src, DataPlane: o.DataPlane, Sink: m.sink, Ports: o.Ports, Observe: m.observe, Logger: o.Logger, Holdoff: o.Holdoff})
	if err != nil {
		return nil, err
	}
	if err := m.prepareReport(); err != nil {
		return nil, err
	}
	if o.Election.Name != "" {
		if err := m.prepareElection(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Loop returns the manager's loop, which the manager runs.
func (m *Manager) Loop() *Loop { return m.loop }

// Run runs until ctx ends. Neither a lost API server nor a lost election ends it:
// what is served is served on.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	terms := make(chan context.Context)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { m.write(ctx, terms) })
	running.Go(func() { m.stand(ctx, terms) })
	if m.report != nil {
		running.Go(func() { m.report.Run(ctx) })
	}
	err := m.loop.Run(ctx)
	cancel()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// prepareReport makes the reporter, if there is something to report under.
func (m *Manager) prepareReport() (err error) {
	r := m.o.Report
	if r.Name == "" {
		return nil
	}
	m.report, err = node.New(node.Options{
		Client: m.source.Client(), Name: r.Name, NodeName: r.NodeName, ControllerName: m.o.Compile.ControllerName, Version: r.Version,
		Started: m.o.Now(), Stats: r.Stats, Every: r.Every, Pace: r.Pace, Now: m.o.Now, Logger: m.log,
	})
	return err
}

// observe tells the reporter of a turn of the loop, which calls it.
func (m *Manager) observe(s *State) {
	if m.report == nil {
		return
	}
	if s.Hash != m.hash {
		m.hash, m.applied = s.Hash, m.o.Now()
	}
	o := &node.Observation{Hash: s.Hash, Applied: m.applied, Refused: s.Result.Err, Restart: s.Report.Restart(), Gateways: s.Report.Gateways}
	in := m.source.Current()
	for _, p := range in.DataPlanes {
		if p.Name == m.o.Report.Name {
			o.Object = p
		}
	}
	for _, n := range in.Nodes {
		if n.Name == m.o.Report.NodeName {
			o.NodeUID = n.UID
		}
	}
	m.report.Observe(o)
}

func (m *Manager) prepareElection() error {
	if m.o.Election.Namespace == "" || m.o.Election.Identity == "" {
		return errors.New("an election needs the namespace of its Lease, and an identity")
	}
	// A client of its own: a busy status writer must not delay the lease.
	config := rest.CopyConfig(m.o.Config)
	config.Timeout = m.o.Election.Lease / 3
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("prepare the election: %w", err)
	}
	m.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: m.o.Election.Namespace, Name: m.o.Election.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.o.Election.Identity},
	}
	return nil
}

// write writes the status during the terms of this process, one after the other.
func (m *Manager) write(ctx context.Context, terms <-chan context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case term := <-terms:
			m.log.Info("leading: this process writes the status")
			m.sink.Run(term)
			if ctx.Err() == nil {
				m.log.Warn("not leading any more; traffic goes on")
			}
		}
	}
}

// stand stands for election again and again until ctx ends.
func (m *Manager) stand(ctx context.Context, terms chan<- context.Context) {
	begin := func(term context.Context) {
		select {
		case terms <- term:
		case <-term.Done():
		}
	}
	if m.lock == nil {
		begin(ctx)
		return
	}
	lease := m.o.Election.Lease
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: m.lock, LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: lease / 8,
			Name: m.o.Election.Name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: begin,
				OnStoppedLeading: func() {},
				OnNewLeader: func(identity string) {
					if identity != m.o.Election.Identity {
						m.log.Info("another process leads", zap.String("leader", identity))
					}
				},
			},
		})
		if err != nil {
			m.log.Error("no election is possible", zap.Error(err))
			return
		}
		elector.Run(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease/3)
	defer cancel()
	if err := release(last, m.lock); err != nil {
		m.log.Warn("another process has to wait until the lease has run out", zap.Error(err))
	}
}
