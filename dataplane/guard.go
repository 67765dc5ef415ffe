package dataplane

import (
	"cmp"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/pressure"
)

const (
	// memoryEvery is the least time between two looks at the memory while
	// connections are accepted; guardEvery that between two looks while none is.
	memoryEvery = 100 * time.Millisecond
	guardEvery  = 50 * time.Millisecond
	// collectEvery is how often the collector is run while the gate is closed for
	// want of memory: what is live is not known before, and nothing may be
	// allocated that would start it.
	collectEvery = 2 * time.Second
)

// guard keeps the process within its limits: while it is over one, the sockets
// accept nothing, and connections wait in the kernel's queues.
type guard struct {
	limit  atomic.Pointer[pressure.Usage] // a snapshot may replace it
	looked atomic.Int64                   // when the memory was last looked at, Unix nanoseconds
	look   chan struct{}
	cause  atomic.Uint32 // pressure.Cause
	shuts  [3]atomic.Uint64
}

// GuardStats tell of the process's own limits.
type GuardStats struct {
	Limit pressure.Usage // 0: none
	Cause pressure.Cause // why nothing is accepted
	// Shuts counts how often accepting stopped, by cause.
	Shuts [3]uint64
}

// Guard returns the state of the process's own limits.
func (s *Server) Guard() GuardStats {
	g := &s.guard
	st := GuardStats{Limit: *g.limit.Load(), Cause: pressure.Cause(g.cause.Load())}
	for i := range st.Shuts {
		st.Shuts[i] = g.shuts[i].Load()
	}
	return st
}

// setLimit makes the limits those that a snapshot asks for, and those of the options
// where it says nothing. They are looked at at once.
func (s *Server) setLimit(p ir.Process) {
	limit := pressure.Usage{
		Connections: cmp.Or(p.MaxConnections, max(s.opts.MaxConnections, 0)),
		Memory:      cmp.Or(p.MemoryLimit, max(s.opts.MemoryLimit, 0)),
	}
	if was := s.guard.limit.Load(); was != nil && *was == limit {
		return
	}
	s.guard.limit.Store(&limit)
	s.guard.wake()
}

// wake has the guard look at what is used.
func (g *guard) wake() {
	select {
	case g.look <- struct{}{}:
	default: // it is about to look
	}
}

// accepted is called on a loop for each connection; n are open now.
func (g *guard) accepted(n int64, now time.Time) {
	limit := g.limit.Load()
	due := limit.Connections > 0 && n >= limit.Connections
	if at := now.UnixNano(); !due && limit.Memory > 0 && at-g.looked.Load() >= int64(memoryEvery) {
		g.looked.Store(at)
		due = true
	}
	if due {
		g.wake()
	}
}

// watch runs the guard until the server ends. It sleeps unless connections are
// accepted, or nothing may be.
func (s *Server) watch() {
	g := &s.guard
	process := pressure.NewProcess(*g.limit.Load())
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	var collected time.Time
	for {
		select {
		case <-s.stop:
			return
		case <-g.look:
		case <-again.C:
		}
		now := s.opts.Now()
		if process.Cause() == pressure.ByMemory && now.Sub(collected) >= collectEvery {
			collected = now
			runtime.GC()
		}
		was := process.Cause()
		process.SetLimit(*g.limit.Load())
		cause := process.Decide(pressure.Usage{Connections: s.connections.Load(), Memory: s.opts.MemoryUsed()})
		if cause != was {
			s.setShut(cause)
		}
		if cause == pressure.NoCause {
			continue
		}
		if cause == pressure.ByConnections {
			s.makeRoom()
		}
		again.Reset(guardEvery)
	}
}

// setShut makes the sockets accept, or not.
func (s *Server) setShut(cause pressure.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, log := &s.guard, s.opts.Logger
	was := pressure.Cause(g.cause.Load())
	for _, sock := range s.sockets {
		switch {
		case sock.listener == nil:
		case cause != pressure.NoCause:
			sock.listener.Pause()
		case !s.paused:
			sock.listener.Resume()
		}
	}
	g.cause.Store(uint32(cause)) // who reads that the gate is closed finds it so
	g.shuts[cause].Add(1)
	if cause == pressure.NoCause {
		log.Info("accepting connections again", zap.Stringer("after", was), zap.Int64("connections", s.connections.Load()))
	} else {
		log.Warn("not accepting connections: the process is at its limit", zap.Stringer("limit", cause),
			zap.Int64("connections", s.connections.Load()), zap.Int64("memory", s.opts.MemoryUsed()))
	}
}

// shut tells that nothing may be accepted; mu is held.
func (s *Server) shut() bool { return pressure.Cause(s.guard.cause.Load()) != pressure.NoCause }

// makeRoom closes connections that wait for a request, so that those which have
// one get in: a few of each loop at a time.
func (s *Server) makeRoom() {
	n := int(s.guard.limit.Load().Connections/32)/len(s.workers) + 1
	for _, w := range s.workers {
		w.Post(func() { w.closeSome(n) })
	}
}

// closeSome closes up to n connections that wait for a request.
func (w *worker) closeSome(n int) {
	for c := w.clients.first; c != nil && n > 0; {
		next := c.next
		switch {
		case c.wait != waitRequest || c.requests == 0 || c.conn.Unread() > 0:
		case c.h2 != nil:
			c.h2.drain()
			n--
		default:
			c.finish(false)
			n--
		}
		c = next
	}
}

// connectionLimit is the default of Options.MaxConnections: three quarters of the
// descriptors that the process may open. The rest is for upstreams.
func connectionLimit() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return 0
	}
	return max(int64(l.Cur)*3/4, 1)
}

// memoryLimit is the default of Options.MemoryLimit: that of the Go runtime,
// GOMEMLIMIT; 0 when it has none.
func memoryLimit() int64 {
	if l := debug.SetMemoryLimit(-1); l < math.MaxInt64 {
		return l
	}
	return 0
}

// liveMemory is the default of Options.MemoryUsed: what the last collection left,
// and the stacks.
func liveMemory() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, x := range samples {
		if x.Value.Kind() == metrics.KindUint64 {
			sum += x.Value.Uint64()
		}
	}
	return int64(sum)
}
