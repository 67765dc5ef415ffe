package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/route"
	"github.com/headgate/headgate/dataplane/tlsterm"
	"github.com/headgate/headgate/dataplane/upstream"
)

// Server is the data plane of one process. Apply and Shutdown may be called
// from any goroutine.
type Server struct {
	opts     Options
	reactor  *reactor.Reactor
	workers  []*worker
	clusters *upstream.Manager
	tls      *tlsterm.Terminator

	// current is what requests are served by: the one pointer that an update
	// publishes.
	current     atomic.Pointer[generation]
	draining    atomic.Bool
	drainIdle   atomic.Int64 // nanoseconds, once draining; see Drain
	connections atomic.Int64
	guard       guard
	idle        chan struct{} // receives when the last connection ended
	stop        chan struct{} // closed by Close
	done        sync.WaitGroup

	mu      sync.Mutex // serialises Apply and Shutdown
	checker ir.Validator
	sockets map[string]*socket
	made    int // sockets so far: the next one's index
	table   *route.Table
	paused  bool // another process accepts in the place of this one
	closed  bool
}

// generation is one published state. It never changes.
type generation struct {
	snapshot *ir.Snapshot
	at       time.Time
	routes   []*route.Socket // by socket.index; nil where the socket went
}

// ErrClosed is returned by Apply after Shutdown.
var ErrClosed = errors.New("dataplane: server is closed")

// New starts the loops. Nothing is served before the first Apply. Close or
// Shutdown ends it.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.Reactor.Logger = o.Logger
	r, err := reactor.New(o.Reactor)
	if err != nil {
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	s := &Server{
		opts:    o,
		reactor: r,
		tls:     tlsterm.New(tlsterm.Options{MaxHandshakes: o.MaxHandshakes}),
		idle:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		sockets: map[string]*socket{},
		guard:   guard{look: make(chan struct{}, 1)},
	}
	s.setLimit(ir.Process{})
	s.opts.Process.Workers = cmp.Or(o.Process.Workers, len(r.Loops()))
	s.opts.Process.Pinning = cmp.Or(o.Process.Pinning, pinning(o.Reactor.Pin))
	loops := make([]upstream.Loop, 0, len(r.Loops()))
	for _, l := range r.Loops() {
		w := newWorker(s, l)
		s.workers = append(s.workers, w)
		loops = append(loops, w)
	}
	s.clusters = upstream.NewManager(upstream.Options{
		Loops: loops, Pool: o.Pool, Adaptive: o.Adaptive, Pressure: o.Pressure,
		Limits: o.Limits, Metrics: o.Metrics, Now: o.Now, CPU: s.cpuCapacity,
		OnResolveError: s.unresolved, OnEndpoint: s.endpointChanged,
	})
	s.current.Store(&generation{snapshot: &ir.Snapshot{}})
	s.tls.Rotate(o.Now())
	s.done.Go(s.rotate)
	s.done.Go(s.watch)
	return s, nil
}

// rotateEvery is how often the TLS terminator hears of the time.
const rotateEvery = time.Minute

func (s *Server) rotate() {
	t := time.NewTicker(rotateEvery)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			s.tls.Rotate(now)
		}
	}
}

// Snapshot returns what is being served and since when.
func (s *Server) Snapshot() (*ir.Snapshot, time.Time) {
	g := s.current.Load()
	return g.snapshot, g.at
}

// Connections returns the number of open client connections.
func (s *Server) Connections() int64 { return s.connections.Load() }

// Loops returns what each loop has done so far.
func (s *Server) Loops() []reactor.LoopStats {
	out := make([]reactor.LoopStats, 0, len(s.workers))
	for _, l := range s.reactor.Loops() {
		out = append(out, l.Stats())
	}
	return out
}

// Accepts returns how many accepts failed, each followed by a pause, and how many
// connections were closed at once for want of descriptors.
func (s *Server) Accepts() (failed, shed uint64) { return s.reactor.Accepts() }

// Table returns the routing table that is served, nil before the first Apply.
func (s *Server) Table() *route.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table
}

// Apply makes snap what is served. When it returns, every socket that could be
// opened accepts, and requests that begin from now on are matched by snap;
// exchanges that are under way finish by what they began with. A snapshot that
// is refused changes nothing.
func (s *Server) Apply(snap *ir.Snapshot) ir.ApplyResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ir.ApplyResult{Err: ErrClosed}
	}
	if err := s.checker.Validate(snap); err != nil {
		return ir.ApplyResult{Err: err}
	}
	s.clusters.Update(snap.Clusters)
	table, err := s.bind(snap)
	if err != nil {
		served := s.current.Load().snapshot.Clusters
		s.clusters.Update(served)
		s.clusters.Retire(served)
		return ir.ApplyResult{Err: err}
	}
	for _, spec := range snap.Sockets {
		sock := s.sockets[spec.Name]
		if sock == nil {
			sock = s.newSocket(spec)
			s.sockets[spec.Name] = sock
		}
		sock.update(spec)
	}
	s.table = table
	last := s.current.Load().snapshot
	s.publish(snap)
	s.setLimit(snap.Process)
	failed := s.open(snap)
	s.closeOthers(snap)
	s.clusters.Retire(snap.Clusters)
	if routesLeft(last, snap) {
		s.retainRoutes(snap)
	}
	return ir.ApplyResult{Sockets: failed, Restart: s.restart(snap.Process)}
}

// restart returns what the process would run with if it were started again, and
// does not.
func (s *Server) restart(p ir.Process) []ir.Setting {
	var out []ir.Setting
	runs, asked := len(s.workers), cmp.Or(p.Workers, s.opts.Process.Workers)
	if runs != asked {
		out = append(out, ir.Setting{Name: "workers", Runs: strconv.Itoa(runs), Asked: strconv.Itoa(asked)})
	}
	pins, wanted := pinning(s.opts.Reactor.Pin), cmp.Or(p.Pinning, s.opts.Process.Pinning)
	if pins != wanted {
		out = append(out, ir.Setting{Name: "pinning", Runs: pins.String(), Asked: wanted.String()})
	}
	return out
}

func pinning(pin bool) ir.Pinning {
	if pin {
		return ir.PinPerCPU
	}
	return ir.PinOff
}

// bind builds the next table as a transaction on the last one.
func (s *Server) bind(snap *ir.Snapshot) (*route.Table, error) {
	var failed error
	bind := func(_ *ir.Socket, l *ir.Listener, r *ir.Route, rule *ir.Rule) any {
		a, err := newAction(s, l, r, rule)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		return a
	}
	var table *route.Table
	var err error
	if s.table == nil {
		table, err = route.New(snap.Sockets, bind)
	} else {
		table, err = s.table.Update(snap.Sockets, bind)
	}
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("dataplane: %w", err)
	}
	return table, nil
}

func (s *Server) publish(snap *ir.Snapshot) {
	g := &generation{snapshot: snap, at: s.opts.Now(), routes: make([]*route.Socket, s.made)}
	for _, spec := range snap.Sockets {
		g.routes[s.sockets[spec.Name].index] = s.table.Socket(spec.Name)
	}
	s.current.Store(g)
}

// open binds the sockets that are not bound yet, after their routes are
// published: the first connection already finds them.
func (s *Server) open(snap *ir.Snapshot) map[string]error {
	var failed map[string]error
	for _, spec := range snap.Sockets {
		sock := s.sockets[spec.Name]
		if sock.listener != nil || s.paused {
			continue
		}
		l, err := s.listen(sock)
		if err != nil {
			if failed == nil {
				failed = map[string]error{}
			}
			failed[spec.Name] = err
			continue
		}
		if s.shut() {
			l.Pause()
		}
		sock.listener = l
	}
	return failed
}

// closeOthers closes the sockets that snap does not name. Their connections
// are answered 404 from now on, and closed.
func (s *Server) closeOthers(snap *ir.Snapshot) {
	for name, sock := range s.sockets {
		if slices.ContainsFunc(snap.Sockets, func(k *ir.Socket) bool { return k.Name == name }) {
			continue
		}
		sock.close()
		delete(s.sockets, name)
	}
}

// routesLeft tells whether a route of last may not be in next.
func routesLeft(last, next *ir.Snapshot) bool {
	now := make(map[string][]*ir.Route)
	for _, k := range next.Sockets {
		for _, l := range k.Listeners {
			now[l.Name] = l.Routes
		}
	}
	for _, k := range last.Sockets {
		for _, l := range k.Listeners {
			if !namesAll(now[l.Name], l.Routes) {
				return true
			}
		}
	}
	return false
}

// namesAll tells whether now has a route of the name of each in was. Both are
// sorted.
func namesAll(now, was []*ir.Route) bool {
	for _, r := range was {
		for len(now) > 0 && now[0] != r && now[0].Name < r.Name {
			now = now[1:]
		}
		if len(now) == 0 || now[0] != r && now[0].Name != r.Name {
			return false
		}
		now = now[1:]
	}
	return true
}

func (s *Server) retainRoutes(snap *ir.Snapshot) {
	named := map[string]bool{}
	for _, sock := range snap.Sockets {
		for _, l := range sock.Listeners {
			for _, r := range l.Routes {
				named[r.Name] = true
			}
		}
	}
	s.opts.Metrics.RetainRoutes(func(name string) bool { return named[name] })
}

func (s *Server) connectionEnded() {
	if s.connections.Add(-1) == 0 {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}
