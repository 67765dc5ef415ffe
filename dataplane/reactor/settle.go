//go:build linux

package reactor

import (
	"time"

	"github.com/panjf2000/gnet/v2/pkg/netpoll"
)

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
func (c *Conn) settleFailed() {
	switch {
	case c.flags&(flagClosing|flagEOF) != 0:
		c.finish(c.err)
	case c.flags&flagPaused == 0:
		c.receive()
	case unread(c.fd) == 0:
		c.finish(c.err)
	}
}

// settleSent does what waits for the outbound queue to be empty.
func (c *Conn) settleSent() {
	if c.flags&(flagShut|flagShutDone) == flagShut {
		c.flags |= flagShutDone
		if errno := shutdownWrite(c.fd); errno != 0 {
			c.flags |= flagEOF // not connected any more
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

// interest is what the poller reports of a connection's descriptor.
type interest uint8

const (
	// nothing: not registered.
	nothing interest = iota
	// readable: level-triggered.
	readable
	// readWritable: level-triggered.
	readWritable
	// held: edge-triggered writable, and no reading. The poller has no empty
	// interest and no way from reading to writing but to register anew. This
	// one costs one spurious event, then only tells that a blocked send buffer
	// has room, that the peer has ended, or a reset, and each of them once.
	held
)

// tellPoller changes what the poller reports to what the connection's state
// needs. Pausing costs nothing until the peer sends something: then the first
// report, which is not wanted, makes it known.
func (c *Conn) tellPoller() {
	want := readable
	switch {
	case c.flags&(flagConnecting|flagEOF) != 0,
		c.flags&(flagClosing|flagLinger) == flagClosing,
		c.flags&(flagClosing|flagPaused|flagIgnored) == flagPaused|flagIgnored:
		want = held
	case c.flags&flagBlocked != 0:
		want = readWritable
	}
	if want == c.interest {
		return
	}
	p, at := c.loop.poller, &c.loop.attach
	at.FD = c.fd
	var err error
	switch {
	case want == held:
		if c.interest != nothing {
			err = p.Delete(c.fd)
		}
		if err == nil {
			err = p.AddWrite(at, true)
		}
	case c.interest == nothing:
		err = add(p, at, want)
	case want == readable:
		err = p.ModRead(at, false)
	default:
		err = p.ModReadWrite(at, false)
	}
	if err != nil {
		c.finish(err)
		return
	}
	c.interest = want
}

func add(p *netpoll.Poller, at *netpoll.PollAttachment, want interest) error {
	if want == readable {
		return p.AddRead(at, false)
	}
	return p.AddReadWrite(at, false)
}

// leastProgress is what a peer must take of a closing connection's last bytes
// within [Options.CloseTimeout].
const leastProgress = 1 << 10

// closer is the deadline of a closing connection. It is apart from Conn because
// most connections never need one.
type closer struct {
	Timer
	next   *closer // in the loop's free list
	conn   *Conn
	linger time.Duration // how long to read after the half-close
	left   int           // bytes that the peer had not acknowledged at the last look
}

func (l *Loop) getCloser(c *Conn) *closer {
	k := l.idleClosers
	if k == nil {
		k = new(closer)
		k.Fire = func(time.Time) { k.expire() }
	} else {
		l.idleClosers = k.next
	}
	k.next, k.conn, k.linger = nil, c, 0
	return k
}

func (l *Loop) putCloser(k *closer) {
	l.Cancel(&k.Timer)
	k.conn = nil
	k.next = l.idleClosers
	l.idleClosers = k
}

// watch starts the deadline for the bytes that are queued.
func (k *closer) watch() {
	c := k.conn
	k.left = c.out.n + unacknowledged(c.fd)
	c.loop.Schedule(&k.Timer, c.loop.options.CloseTimeout)
}

// expire ends a lingering connection, or a closing one that made no progress.
// Slow is not stalled: a slow peer gets its bytes.
func (k *closer) expire() {
	c := k.conn
	if c.flags&flagLinger != 0 {
		c.finish(nil)
		return
	}
	if left := c.out.n + unacknowledged(c.fd); left > k.left-leastProgress {
		c.Abort(ErrCloseTimeout)
		return
	}
	k.watch()
}
