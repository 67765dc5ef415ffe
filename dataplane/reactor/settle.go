//go:build linux

package reactor

import "os"

// settle brings the connection to rest after a callback: it sends what was
// queued, calls the callbacks that have become due, closes, and tells the
// poller what to report.
func (c *Conn) settle() {
	if c.flags&flagConnected != 0 && c.flags&flagDone == 0 {
		c.flags &^= flagConnected
		if h, ok := c.handler.(DialHandler); ok && c.flags&flagClosing == 0 {
			h.OnConnect(c)
		}
	}
	if c.flags&flagDone == 0 {
		c.flush()
		if c.flags&flagFailed != 0 {
			c.settleFailed()
		}
	}
	if c.flags&flagDone == 0 && c.out.n == 0 && c.flags&flagConnecting == 0 {
		c.settleSent()
	}
	if c.flags&flagAbove != 0 && c.out.n <= c.loop.options.LowWater {
		c.flags &^= flagAbove
		if c.flags&(flagDone|flagClosing) == 0 {
			c.handler.OnDrained(c)
		}
	}
	if c.flags&flagDone != 0 {
		c.report()
		return
	}
	switch {
	case c.flags&flagClosing == 0:
	case c.flags&flagConnecting != 0:
		c.finish(nil)
		return
	case c.closer == nil:
		c.closer = c.loop.getCloser(c)
		c.closer.watch()
	case !c.closer.Armed():
		c.closer.watch()
	}
	c.tellPoller()
}

// settleFailed decides what becomes of a connection that can't be written to.
// An accepted one ends: whatever its peer still asks for, it can't be answered.
// On a dialled one the answer may have come before the reset, and is read.
func (c *Conn) settleFailed() {
	switch {
	case c.flags&(flagClosing|flagEOF|flagAccepted) != 0:
		c.finish(c.err)
	case c.flags&flagPaused == 0:
		c.receive()
	case unread(c.fd) == 0 && !endedFirst(c.err):
		c.finish(c.err)
	}
}

// settleSent does what waits for the outbound queue to be empty.
func (c *Conn) settleSent() {
	if c.flags&(flagShut|flagShutDone) == flagShut {
		c.flags |= flagShutDone
		if errno := shutdownWrite(c.fd); errno != 0 && c.flags&flagClosing == 0 {
			// Reset already, and the reset's reason is still to be told.
			if reason := socketError(c.fd); reason != 0 {
				errno = reason
			}
			c.fail(os.NewSyscallError("shutdown", errno))
			return
		}
	}
	switch {
	case c.flags&flagClosing == 0:
		if c.flags&(flagShutDone|flagEOF) == flagShutDone|flagEOF {
			c.finish(nil)
		}
	case c.closer == nil || c.closer.linger == 0 || c.flags&flagEOF != 0:
		c.finish(nil)
	case c.flags&flagLinger == 0:
		c.flags |= flagLinger
		c.loop.Schedule(&c.closer.Timer, c.closer.linger)
	}
}

// finish closes the descriptor. OnClose follows when the connection is settled.
func (c *Conn) finish(err error) {
	if c.flags&flagDone != 0 {
		return
	}
	l := c.loop
	c.flags |= flagDone
	c.err = err
	l.conns[c.fd] = nil // before the number can be used again
	closeFD(c.fd)       // which also takes it from the poller
	c.out.release(&l.free)
	if c.closer != nil {
		l.putCloser(c.closer)
		c.closer = nil
	}
	if c.flags&flagAccepted != 0 {
		l.load.Add(-1)
	}
	l.stats.conns.Add(-1)
	c.touch()
}

// report calls OnClose, once.
func (c *Conn) report() {
	if c.flags&flagReported != 0 {
		return
	}
	c.flags |= flagReported
	if c.handler != nil {
		c.handler.OnClose(c, c.err)
	}
}
