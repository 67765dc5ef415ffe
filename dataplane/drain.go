package dataplane

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// drainLinger is how long a connection that is closed in a drain is read and
// dropped, so that a request which crosses the end gets no reset.
const drainLinger = time.Second

// Drain stops accepting and tells the clients to close: the next answer on each
// connection is the last. A connection without a request is kept for between half
// of idle and all of it, so that a request which is on its way is answered. What
// is under way goes on; Shutdown waits for it. A second Drain does nothing.
func (s *Server) Drain(idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain(idle)
}

// drain is Drain; mu is held.
func (s *Server) drain(idle time.Duration) {
	for _, sock := range slices.Collect(maps.Values(s.sockets)) {
		sock.close()
	}
	s.paused = true // nothing is opened any more
	if s.draining.Load() {
		return
	}
	s.drainIdle.Store(int64(max(idle, time.Millisecond)))
	s.draining.Store(true)
	for _, w := range s.workers {
		w.Post(w.drain)
	}
}

// Shutdown drains at once unless Drain was called before, waits for what is under
// way as long as ctx allows (30 s when it has no deadline), and ends the server.
// It returns ctx's error when connections had to be cut.
func (s *Server) Shutdown(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultDrain)
		defer cancel()
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.drain(0)
	s.mu.Unlock()

	var err error
	for err == nil && s.connections.Load() > 0 {
		select {
		case <-s.idle:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	close(s.stop)
	s.clusters.Close()
	err = errors.Join(err, s.reactor.Close())
	s.done.Wait()
	return err
}

// drain tells the loop's connections that the server stops.
func (w *worker) drain() {
	for c := w.clients.first; c != nil; {
		next := c.next
		c.drain()
		c = next
	}
}

// idleTimeout is how long a connection may be without a request.
func (s *socket) idleTimeout() time.Duration {
	if s.srv.draining.Load() {
		return min(s.timeouts().Idle, time.Duration(s.srv.drainIdle.Load()))
	}
	return s.timeouts().Idle
}

// drain tells the connection that the server is about to stop.
func (c *client) drain() {
	switch {
	case c.wait == waitRequest && (c.h2 == nil || !c.h2.warned):
		// Not all at once: their clients connect again.
		d := c.socket.idleTimeout()
		c.arm(waitRequest, d/2+rand.N(d/2+1))
	case c.h2 != nil:
		c.h2.drain()
	case c.wait == waitReader && c.ex == nil && !c.bodyOpen && len(c.in) == 0:
		c.finish(false) // when it has read its answer
	}
}

// closeIdle closes a connection that has been without a request for long enough,
// unless one has just come.
func (c *client) closeIdle() {
	switch {
	case c.conn.Unread() > 0:
		c.arm(waitRequest, drainLinger) // the loop reads it in this turn
	case c.worker.srv.draining.Load():
		c.finishWithin(drainLinger)
	default:
		c.finish(false)
	}
}
