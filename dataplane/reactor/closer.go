//go:build linux

package reactor

import "time"

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
