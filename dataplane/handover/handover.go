package handover

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Gate is what accepts in this process. Its methods are called by one goroutine
// at a time, none of which a method may wait for.
type Gate interface {
	// Sockets returns duplicates of the listening sockets; the caller closes
	// them.
	Sockets() ([]Socket, error)
	// Pause stops accepting but keeps the sockets: another process serves.
	Pause()
	// Resume accepts again: that process is gone.
	Resume()
}

// Options of a Handover; all but Gate are required, and Gate is before
// [Handover.Serving].
type Options struct {
	// Dir is the directory that the processes of one node share. It must belong
	// to this user, or to the superuser, and others must not write to it.
	Dir string
	// Build is what this process is, for the other one's log.
	Build string
	// Gate is asked when a new process comes.
	Gate   Gate
	Logger *zap.Logger
	// Now is the wall clock.
	Now func() time.Time

	identify func(*net.UnixConn) (uint32, error) // the tests' own kernel
}

// Handover is one process's part in the chain of those that serve on a node:
// first it takes the sockets of the one before, then it gives them to the next.
// Any goroutine may call its methods.
type Handover struct {
	o         Options
	log       *zap.Logger
	life      *life
	done      sync.WaitGroup
	succeeded chan struct{} // closed when the first successor serves

	asking sync.Mutex // held by Ask, Take and Serving: one question at a time
	gating sync.Mutex // held while the gate is moved; before mu

	mu          sync.Mutex
	inherited   map[name][]int // descriptors that nobody has fetched yet
	predecessor *predecessor   // nil when there is none, or it went
	answered    bool           // a predecessor answered, once
	sessions    map[*session]struct{}
	changed     chan struct{} // closed and replaced when sessions change
	successor   *session      // the session whose process serves
	retired     bool          // the successor has handed over itself
	leaving     bool
	paused      bool
	path        *PathListener // nil before Serving and after Leave
	stats       Stats
	quiet       time.Time // when a refusal was logged last
	unlogged    int       // refusals since then
}

// Stats are what a Handover has done so far.
type Stats struct {
	Taken     uint64 // hand-overs to this process
	Given     uint64 // hand-overs by this process
	Resumed   uint64 // times that a successor was lost and this process accepted again
	Refused   uint64 // processes that were refused: strangers, garbage, too many
	Sockets   int    // sockets that this process got
	Accepting bool   // no successor serves
}

// Open checks the directory and marks it as used by a live process. Close ends
// it.
func Open(o Options) (*Handover, error) {
	if o.Dir == "" || o.Logger == nil || o.Now == nil {
		return nil, errors.New("handover: Dir, Logger and Now are required")
	}
	if o.identify == nil {
		o.identify = identify
	}
	if err := checkDirectory(o.Dir); err != nil {
		return nil, err
	}
	l, err := openLife(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Handover{
		o: o, log: o.Logger.Named("handover"), life: l, succeeded: make(chan struct{}),
		inherited: map[name][]int{}, sessions: map[*session]struct{}{}, changed: make(chan struct{}),
	}, nil
}

// Stats returns what has happened so far.
func (h *Handover) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stats
	s.Accepting = !h.paused
	return s
}

// Succeeded is closed when another process serves in the place of this one. That
// may be undone as long as this one lives: see [Gate].
func (h *Handover) Succeeded() <-chan struct{} { return h.succeeded }

// Leave ends this process's part before it drains. While a new process is about
// to serve it waits for it, as long as ctx allows, because the sockets would have
// nobody to accept from them. Then it tells the others, and the gate is not moved
// any more.
func (h *Handover) Leave(ctx context.Context) {
	for ctx.Err() == nil {
		awaited, changed := h.awaited()
		if !awaited {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			h.log.Warn("the new process does not serve yet; draining all the same")
		}
	}
	h.gating.Lock() // whoever moves the gate is done
	h.mu.Lock()
	h.leaving = true
	reason := byeStopping
	if h.successor != nil || h.retired {
		reason = byeHandedOver
	}
	before := h.predecessor
	var after []*session
	for s := range h.sessions {
		after = append(after, s)
	}
	path := h.path
	h.path = nil
	h.mu.Unlock()
	h.gating.Unlock()
	h.leavePath(path)
	if before != nil {
		before.bye(reason)
	}
	for _, s := range after {
		s.bye(byeStopping)
	}
}

// leavePath closes a listener, which may be nil.
func (h *Handover) leavePath(l *PathListener) {
	if l == nil {
		return
	}
	if err := l.Close(); err != nil {
		h.log.Warn("closing the hand-over socket", zap.Error(err))
	}
}

// awaited tells whether a process has the sockets and is to serve soon; changed is
// closed when that may be otherwise.
func (h *Handover) awaited() (yes bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.successor == nil {
		for s := range h.sessions {
			yes = yes || s.given
		}
	}
	return yes, h.changed
}

// Close lets go of everything, at once if [Handover.Leave] was not called.
func (h *Handover) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.Leave(ctx)
	h.drop()
	h.done.Wait()
	h.life.close()
}

// socketPath is where the process that serves answers.
func (h *Handover) socketPath() string { return filepath.Join(h.o.Dir, socketFile) }
