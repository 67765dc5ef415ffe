//go:build linux

package reactor

import (
	"errors"
	"sync"

	"github.com/panjf2000/gnet/v2/pkg/logging"
	"go.uber.org/zap"
)

// Reactor is a set of loops and the acceptor that feeds them.
type Reactor struct {
	options  Options
	loops    []*Loop
	acceptor *Loop // the loop itself when there is but one
	running  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[*Listener]struct{}
}

// New opens the pollers and starts the loops and the acceptor.
func New(o Options) (*Reactor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	// gnet's poller logs through a logger that is global to the process; the
	// last reactor's is as good as any.
	logging.SetDefaultLoggerAndFlusher(gnetLogger{o.Logger.Named("gnet").Sugar()}, nil)
	r := &Reactor{options: o, listeners: map[*Listener]struct{}{}}
	cpus := make([]int, o.Workers)
	for i := range cpus {
		cpus[i] = -1
	}
	if o.Pin {
		allowed, err := affinity()
		if err != nil {
			return nil, err
		}
		for i := range cpus {
			cpus[i] = allowed[i%len(allowed)]
		}
	}
	for i := range o.Workers {
		l, err := r.start(i, cpus[i])
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.loops = append(r.loops, l)
	}
	if o.Workers == 1 {
		// Nobody to choose from: the loop accepts by itself.
		r.acceptor = r.loops[0]
	} else if r.acceptor, err = r.start(-1, -1); err != nil {
		return nil, errors.Join(err, r.Close())
	} else {
		r.acceptor.place = newPlacer(o.Placement, r.loops)
	}
	return r, nil
}

// start makes a loop and starts its thread.
func (r *Reactor) start(index, cpu int) (*Loop, error) {
	l, err := newLoop(index, &r.options)
	if err != nil {
		return nil, err
	}
	acceptsOwn := index >= 0 && (r.options.Placement == ReusePort || r.options.Workers == 1)
	if acceptsOwn {
		l.place = newPlacer(RoundRobin, []*Loop{l})
	}
	if acceptsOwn || index < 0 {
		l.openReserve()
	}
	ready := make(chan error)
	r.running.Go(func() { l.run(cpu, ready) })
	if err := <-ready; err != nil {
		return nil, err
	}
	return l, nil
}

// Loops returns the worker loops, by index.
func (r *Reactor) Loops() []*Loop { return r.loops }

// AcceptorStats returns the acceptor's counters. Its connections are counted by
// the loops that get them, and its CPU time is not known. With one worker these
// are the counters of its loop.
func (r *Reactor) AcceptorStats() LoopStats { return r.acceptor.Stats() }

// Accepts returns how many accepts failed, each followed by a pause, and how many
// connections were closed at once for want of descriptors, over all that accept.
func (r *Reactor) Accepts() (failed, shed uint64) {
	for _, l := range r.loops {
		failed += l.stats.acceptErrors.Load()
		shed += l.stats.shed.Load()
	}
	if r.acceptor != r.loops[0] {
		failed += r.acceptor.stats.acceptErrors.Load()
		shed += r.acceptor.stats.shed.Load()
	}
	return failed, shed
}

// Close closes every listener and connection (OnClose gets [ErrClosed]), ends
// the loops, and waits for them. It must not be called on a loop. A second
// Close waits too.
func (r *Reactor) Close() error {
	r.mu.Lock()
	r.closed = true
	listeners := r.listeners
	r.listeners = nil
	r.mu.Unlock()
	for ln := range listeners {
		_ = ln.Close() // has no error
	}
	if r.acceptor != nil {
		r.acceptor.inbox.end()
	}
	for _, l := range r.loops {
		l.inbox.end()
	}
	r.running.Wait()
	return nil
}

// add registers a listener; false when the reactor is closed.
func (r *Reactor) add(ln *Listener) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.listeners[ln] = struct{}{}
	return true
}

func (r *Reactor) remove(ln *Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, ln)
}

// gnetLogger gives gnet's messages to zap, but does not let them end the
// process.
type gnetLogger struct{ *zap.SugaredLogger }

// Fatalf logs at the error level.
func (g gnetLogger) Fatalf(format string, args ...any) { g.Errorf(format, args...) }
