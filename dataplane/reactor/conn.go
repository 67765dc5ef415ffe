//go:build linux

package reactor

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Handler gets the events of a connection, on the connection's loop. No method
// of [Conn] calls a handler before it returns.
type Handler interface {
	// OnRead gives received bytes, which live until it returns. An empty p
	// says that the peer has closed its writing side; that comes once, and
	// nothing is read after it.
	OnRead(c *Conn, p []byte)
	// OnDrained says that the outbound bytes fell to the low watermark after
	// they had been above the high one.
	OnDrained(c *Conn)
	// OnClose is the last event and comes exactly once. err is nil when the
	// handler had called Close and everything was delivered, or when both
	// sides ended; else it says why.
	OnClose(c *Conn, err error)
}

// DialHandler is the handler of a connection that was made by [Loop.Dial].
type DialHandler interface {
	Handler
	// OnConnect says that the connection is established. A connection that
	// fails before gets OnClose only.
	OnConnect(c *Conn)
}

// flags are the state of a connection.
type flags uint16

const (
	flagDirty      flags = 1 << iota // in the loop's list of connections to settle
	flagAccepted                     // counts for the loop's load
	flagConnecting                   // the connect is under way
	flagConnected                    // OnConnect is due
	flagPaused                       // the handler does not want to read
	flagIgnored                      // readable while paused: stop the poller's reports
	flagEOF                          // the peer has closed its writing side
	flagBlocked                      // the kernel takes no more; the poller will tell
	flagAbove                        // OnDrained is due at the low watermark
	flagShut                         // CloseWrite was called
	flagShutDone                     // and FIN was sent
	flagFailed                       // writing has failed with err; there may be bytes to read
	flagClosing                      // Close or CloseLinger was called
	flagLinger                       // CloseLinger was called, and its time runs
	flagDone                         // the descriptor is closed
	flagReported                     // OnClose was called
)

// Conn is one connection. It belongs to its loop: all methods must be called
// there. On a closed Conn they do nothing, and Write drops its bytes.
type Conn struct {
	loop      *Loop
	handler   Handler
	nextDirty *Conn
	closer    *closer // not nil while a closing connection has a deadline
	out       outbound
	err       error // for OnClose
	remote    netip.AddrPort
	local     netip.AddrPort // zero until it is asked for
	fd        int
	flags     flags
	interest  interest
}

// Loop returns the loop that the connection is on.
func (c *Conn) Loop() *Loop { return c.loop }

// Handler returns the current handler.
func (c *Conn) Handler() Handler { return c.handler }

// SetHandler gives the connection's next events to h.
func (c *Conn) SetHandler(h Handler) {
	c.loop.check()
	c.handler = h
}

// RemoteAddr returns the peer's address, or what SetRemoteAddr was given.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// SetRemoteAddr makes addr the connection's remote address: that of whom the peer
// speaks for.
func (c *Conn) SetRemoteAddr(addr netip.AddrPort) {
	c.loop.check()
	c.remote = addr
}

// LocalAddr returns this side's address. It is zero for a connection that was
// closed before anybody asked.
func (c *Conn) LocalAddr() netip.AddrPort {
	c.loop.check()
	if !c.local.IsValid() && c.flags&flagDone == 0 {
		c.local, _ = localAddr(c.fd)
	}
	return c.local
}

// Closed reports whether Close, CloseLinger or Abort was called, or the
// connection has ended by itself.
func (c *Conn) Closed() bool { return c.flags&(flagClosing|flagDone) != 0 }

// Write queues a copy of p. What a callback wrote is sent by one system call
// when it has returned; large amounts are given to the kernel at once, without
// a copy if it takes them.
func (c *Conn) Write(p []byte) {
	c.loop.check()
	if len(p) == 0 || c.flags&(flagDone|flagClosing|flagShut|flagFailed) != 0 {
		return
	}
	if c.flags&(flagBlocked|flagConnecting) == 0 && (len(p) >= directWrite || c.out.n+len(p) >= eagerFlush) {
		p = p[c.transmit(p):]
		if c.flags&flagFailed != 0 {
			return
		}
	}
	c.out.append(&c.loop.free, p)
	if c.out.n > c.loop.options.HighWater {
		c.flags |= flagAbove
	}
	c.touch()
}

// Flush sends what is queued now instead of after the callback.
func (c *Conn) Flush() {
	c.loop.check()
	if c.flags&flagDone == 0 {
		c.flush()
		c.touch()
	}
}

// Buffered returns the outbound bytes that the kernel has not taken.
func (c *Conn) Buffered() int { return c.out.n }

// Unread returns the inbound bytes that the kernel has and that were not read.
func (c *Conn) Unread() int {
	c.loop.check()
	if c.flags&flagDone != 0 {
		return 0
	}
	return unread(c.fd)
}

// PeerEnded tells that the peer has closed its writing side, or the connection,
// even while reading is paused and there are bytes to read before its end. It
// costs a system call.
func (c *Conn) PeerEnded() bool {
	c.loop.check()
	if c.flags&(flagDone|flagEOF) != 0 {
		return true
	}
	return peerEnded(c.fd)
}

// AboveHighWater reports whether the outbound bytes have been above the high
// watermark and OnDrained has yet to come.
func (c *Conn) AboveHighWater() bool { return c.flags&flagAbove != 0 }

// PauseRead stops OnRead, for the end of file too, until ResumeRead. What the
// peer sends stays in the kernel, so that TCP slows the peer down. A reset by
// the peer is still noticed, but on a dialled connection not before the bytes
// that came ahead of it have been read.
func (c *Conn) PauseRead() {
	c.loop.check()
	c.flags |= flagPaused
}

// ResumeRead undoes PauseRead.
func (c *Conn) ResumeRead() {
	c.loop.check()
	if c.flags&flagPaused != 0 {
		c.flags &^= flagPaused | flagIgnored
		c.touch()
	}
}

// ReadPaused reports whether reading is paused.
func (c *Conn) ReadPaused() bool { return c.flags&flagPaused != 0 }

// CloseWrite sends FIN after what is queued. Later writes are dropped. When the
// peer has ended its side too, the connection is closed.
func (c *Conn) CloseWrite() {
	c.loop.check()
	c.flags |= flagShut
	c.touch()
}

// Close sends what is queued and then closes. Nothing is read any more: if the
// peer is still sending, the kernel answers with a reset that may overtake the
// last bytes (see CloseLinger). A peer that takes nothing for
// [Options.CloseTimeout] is cut off.
func (c *Conn) Close() {
	c.loop.check()
	c.flags = c.flags&^flagLinger | flagClosing
	if c.closer != nil {
		c.closer.linger = 0
	}
	c.touch()
}

// CloseLinger sends what is queued, half-closes, and then reads and drops what
// the peer sends until it ends or limit has passed, so that a peer that is still
// sending gets the answer and not a reset (RFC 9112, section 9.6).
func (c *Conn) CloseLinger(limit time.Duration) {
	c.loop.check()
	if c.flags&(flagDone|flagClosing) != 0 {
		return
	}
	c.flags |= flagClosing | flagShut
	if c.flags&(flagEOF|flagConnecting) == 0 && limit > 0 {
		c.closer = c.loop.getCloser(c)
		c.closer.linger = limit
	}
	c.touch()
}

// Abort closes at once with a reset and drops what is queued. OnClose gets err.
func (c *Conn) Abort(err error) {
	c.loop.check()
	if c.flags&flagDone != 0 {
		return
	}
	// Can't fail, and if it did the connection would still be closed.
	_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	c.finish(err)
}

// touch makes the loop settle the connection after the current callback.
func (c *Conn) touch() {
	if c.flags&(flagDirty|flagReported) != 0 {
		return
	}
	c.flags |= flagDirty
	l := c.loop
	if l.dirtyTail == nil {
		l.dirtyHead = c
	} else {
		l.dirtyTail.nextDirty = c
	}
	l.dirtyTail = c
}
