//go:build linux

package reactor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// directWrite is the size from which a write goes to the kernel without
	// being copied first.
	directWrite = 16 << 10
	// eagerFlush is the amount queued in one callback from which on writes go
	// to the kernel without waiting for the callback's end.
	eagerFlush = 64 << 10
	// readsPerEvent bounds the reads of one event: with a read buffer that is
	// filled each time, other connections get their turn after so many.
	readsPerEvent = 5
)

// serve handles an event on c's descriptor. The event may be stale.
func (l *Loop) serve(c *Conn, ev uint32) {
	defer l.guard(c)
	if c.flags&flagConnecting != 0 {
		c.connectable()
		return
	}
	const broken = unix.EPOLLERR | unix.EPOLLHUP
	if ev&(unix.EPOLLOUT|broken) != 0 && c.flags&flagBlocked != 0 {
		c.flags &^= flagBlocked
		c.touch()
	}
	if ev&unix.EPOLLPRI != 0 {
		// The poller asks for EPOLLPRI, and a byte of urgent data (RFC 9293,
		// 3.8.5) would raise it for ever: make it an ordinary byte.
		_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
	}
	switch {
	case ev&(unix.EPOLLIN|unix.EPOLLPRI|unix.EPOLLRDHUP|broken) == 0:
	case c.reading():
		c.receive()
	default:
		if ev&broken != 0 {
			// Reading would tell the error, but nobody wants to read now. Taking
			// it clears it, so it is kept.
			if errno := socketError(c.fd); errno != 0 {
				c.fail(os.NewSyscallError("read", errno))
			}
		}
		c.flags |= flagIgnored
		c.touch()
	}
}

// reading reports whether received bytes are wanted, if only to drop them.
func (c *Conn) reading() bool {
	switch {
	case c.flags&(flagDone|flagEOF) != 0:
		return false
	case c.flags&flagClosing != 0:
		return c.flags&flagLinger != 0
	}
	return c.flags&flagPaused == 0
}

// receive reads once, or a few times when there is much.
func (c *Conn) receive() {
	l := c.loop
	for i := range readsPerEvent {
		n, errno := recv(c.fd, l.readBuffer)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			if c.flags&flagFailed != 0 {
				c.finish(c.err)
			}
			return
		case errno != 0:
			switch {
			case c.flags&flagClosing != 0: // lingering: all was delivered to the kernel
				c.finish(nil)
			case c.flags&flagFailed != 0:
				c.finish(c.err)
			default:
				c.finish(os.NewSyscallError("read", errno))
			}
			return
		case n == 0:
			c.endOfFile()
			return
		}
		if c.flags&flagClosing != 0 { // lingering: drop
			continue
		}
		if i > 0 {
			l.clock.read()
		}
		c.handler.OnRead(c, l.readBuffer[:n])
		if !c.reading() || n < len(l.readBuffer) && c.flags&flagFailed == 0 {
			return
		}
	}
}

// endOfFile handles the peer's FIN, or what looks like it.
func (c *Conn) endOfFile() {
	c.flags |= flagEOF
	c.touch()
	switch {
	case c.flags&flagClosing != 0:
	case c.flags&flagFailed != 0 && !endedFirst(c.err):
		// A reset whose error has been taken reads as end of file, but the
		// peer has not ended in order.
	default:
		c.handler.OnRead(c, nil)
	}
}

// endedFirst reports whether the peer had sent FIN before the reset that err
// tells of: then the kernel says EPIPE, else ECONNRESET.
func endedFirst(err error) bool { return errors.Is(err, unix.EPIPE) }

// flush gives the kernel what is queued.
func (c *Conn) flush() {
	if c.out.n > 0 && c.flags&(flagBlocked|flagConnecting|flagFailed) == 0 {
		c.transmit(nil)
	}
}

// transmit gives the kernel what is queued and then p, and returns how much of
// p it took. When that is not all, c is blocked or has failed.
func (c *Conn) transmit(p []byte) (taken int) {
	l := c.loop
	for c.out.n > 0 || taken < len(p) {
		iov, total := c.out.gather(l.iov[:0])
		if total == c.out.n && taken < len(p) && len(iov) < cap(iov) {
			v := unix.Iovec{Base: &p[taken]}
			v.SetLen(len(p) - taken)
			iov = append(iov, v)
			total += len(p) - taken
		}
		n, errno := l.sendAll(c.fd, iov)
		clear(iov) // keep nobody's bytes alive
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			c.flags |= flagBlocked
			c.touch()
			return taken
		default:
			c.fail(os.NewSyscallError("write", errno))
			return taken
		}
		queued := min(n, c.out.n)
		c.out.consume(&l.free, queued)
		taken += n - queued
		if n < total {
			c.flags |= flagBlocked
			c.touch()
			return taken
		}
	}
	return taken
}

// sendAll writes what iov describes.
func (l *Loop) sendAll(fd int, iov []unix.Iovec) (int, unix.Errno) {
	if len(iov) == 1 {
		return send(fd, &iov[0])
	}
	l.msg.Iov = &iov[0]
	l.msg.SetIovlen(len(iov))
	return sendv(fd, &l.msg)
}

// fail records that nothing can be written any more. What becomes of the
// connection is decided when it is settled.
func (c *Conn) fail(err error) {
	if c.flags&(flagFailed|flagDone) != 0 {
		return
	}
	c.flags |= flagFailed
	c.flags &^= flagBlocked
	c.err = err
	c.out.release(&c.loop.free)
	c.touch()
}
