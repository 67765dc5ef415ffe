//go:build linux

package reactor

import (
	"fmt"
	"net/netip"
	"os"

	gnetsocket "github.com/panjf2000/gnet/v2/pkg/socket"
	"golang.org/x/sys/unix"
)

// Dial begins a TCP connection to addr and never blocks. Later h gets OnConnect,
// or OnClose with the reason. An error means that no socket could be had, and
// that h will get nothing.
func (l *Loop) Dial(addr netip.AddrPort, h DialHandler) (*Conn, error) {
	l.check()
	if l.stopping {
		return nil, ErrClosed
	}
	var sa unix.RawSockaddrInet6
	family, size, err := toSockaddr(addr, &sa)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", addr, os.NewSyscallError("socket", err))
	}
	if err := gnetsocket.SetNoDelay(fd, 1); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("dial %v: %w", addr, err)
	}
	return l.dialed(fd, addr, connect(fd, &sa, size), h), nil
}

// dialed makes a connection of a socket on which connect was called with the
// given outcome.
func (l *Loop) dialed(fd int, addr netip.AddrPort, errno unix.Errno, h DialHandler) *Conn {
	c := &Conn{loop: l, handler: h, fd: fd, remote: addr}
	l.register(c)
	count(&l.stats.dialed)
	switch errno {
	case 0: // at once
		c.connected()
	case unix.EINPROGRESS, unix.EINTR:
		c.flags |= flagConnecting
		c.tellPoller()
	default:
		c.finish(os.NewSyscallError("connect", errno))
	}
	return c
}

// connectable handles an event on a connecting socket. The event may be stale
// and belong to another socket that had the same number.
func (c *Conn) connectable() {
	if errno := socketError(c.fd); errno != 0 {
		c.finish(os.NewSyscallError("connect", errno))
		return
	}
	if _, errno := peerAddr(c.fd); errno == 0 {
		c.flags &^= flagConnecting
		c.connected()
	}
}

// connected makes OnConnect due. A socket that got the very port that it dials
// is connected to itself (RFC 9293, 3.5, simultaneous open): nobody listens.
func (c *Conn) connected() {
	if c.LocalAddr() == c.remote {
		c.Abort(os.NewSyscallError("connect", unix.ECONNREFUSED))
		return
	}
	c.flags |= flagConnected
	c.touch()
}
