//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"

	gnetsocket "github.com/panjf2000/gnet/v2/pkg/socket"
	"golang.org/x/sys/unix"
)

// Keep-alive probes of accepted connections: a peer that has vanished is
// noticed after two and a half minutes.
const (
	keepAliveIdle     = 60 // seconds
	keepAliveInterval = 15 // seconds
	keepAliveCount    = 6
)

// Listener is a listening address. Any goroutine may call its methods.
type Listener struct {
	reactor *Reactor
	addr    netip.AddrPort
	handler func(*Loop, *Conn) Handler
	sockets []*socket // one, or one per loop
	paused  atomic.Bool
}

// Listen binds addr, listens, and accepts at once. For each connection handler
// is called on the connection's loop; it returns the connection's handler, or
// nil to refuse it. An address that is taken yields an error that is EADDRINUSE
// by errors.Is.
func (r *Reactor) Listen(addr netip.AddrPort, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	if !addr.IsValid() {
		return nil, fmt.Errorf("listen: address %v is not valid", addr)
	}
	loops := []*Loop{r.acceptor}
	if r.options.Placement == ReusePort {
		loops = r.loops
	}
	var fds []int
	for range loops {
		fd, err := listen(addr, len(loops) > 1)
		if err == nil {
			fds = append(fds, fd)
			var errno unix.Errno
			if addr, errno = localAddr(fd); errno != 0 { // the others bind the same port
				err = os.NewSyscallError("getsockname", errno)
			}
		}
		if err != nil {
			closeAll(fds)
			return nil, fmt.Errorf("listen on %v: %w", addr, err)
		}
	}
	return r.serveListener(addr, loops, fds, false, handler)
}

// Adopt accepts from an inherited listening TCP descriptor, which must not
// belong to an *os.File. The listener owns fd from now on; after an error it is
// still the caller's. It is always the acceptor that accepts from it, also with
// [ReusePort].
func (r *Reactor) Adopt(fd int, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, fmt.Errorf("adopt descriptor %d: %w", fd, os.NewSyscallError("getsockopt", err))
	}
	if listening == 0 {
		return nil, fmt.Errorf("adopt descriptor %d: not a listening socket", fd)
	}
	addr, errno := localAddr(fd)
	if errno != 0 || !addr.IsValid() {
		return nil, fmt.Errorf("adopt descriptor %d: not a TCP socket", fd)
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("adopt descriptor %d: %w", fd, err)
	}
	if err := inheritable(fd); err != nil {
		return nil, fmt.Errorf("adopt descriptor %d: %w", fd, err)
	}
	return r.serveListener(addr, []*Loop{r.acceptor}, []int{fd}, true, handler)
}

// listen opens a listening socket, with the backlog of net.core.somaxconn.
func listen(addr netip.AddrPort, reusePort bool) (int, error) {
	options := []gnetsocket.Option[int]{{SetSockOpt: gnetsocket.SetReuseAddr, Opt: 1}}
	if reusePort {
		options = append(options, gnetsocket.Option[int]{SetSockOpt: gnetsocket.SetReuseport, Opt: 1})
	}
	network := "tcp4"
	if addr.Addr().Is6() {
		network = "tcp6" // with IPV6_V6ONLY
	}
	var fd int
	if err := privileged(func() (err error) {
		fd, _, err = gnetsocket.TCPSocket(network, addr.String(), true, options, nil)
		return err
	}); err != nil {
		return -1, err
	}
	if err := inheritable(fd); err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// inheritable sets the options that accepted connections shall have. Linux
// copies them from the listening socket, so that they cost nothing per
// connection.
func inheritable(fd int) error {
	return errors.Join(
		gnetsocket.SetNoDelay(fd, 1),
		gnetsocket.SetKeepAlive(fd, true, keepAliveIdle, keepAliveInterval, keepAliveCount),
	)
}

// serveListener starts to accept from fds, the i-th on loops[i].
func (r *Reactor) serveListener(addr netip.AddrPort, loops []*Loop, fds []int, shared bool, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	ln := &Listener{reactor: r, addr: addr, handler: handler}
	for i, fd := range fds {
		s := newSocket(ln, loops[i], fd)
		s.shared = shared
		ln.sockets = append(ln.sockets, s)
	}
	if !r.add(ln) {
		closeAll(fds)
		return nil, ErrClosed
	}
	for _, s := range ln.sockets {
		s.loop.Post(s.open)
	}
	return ln, nil
}

// Addr returns the bound address, with the port that the kernel chose when 0
// was asked for.
func (ln *Listener) Addr() netip.AddrPort { return ln.addr }

// File returns a duplicate of the listening descriptor, to hand over to another
// process. With [ReusePort] that is the first loop's; connections that wait in
// the others' queues can't be handed over.
func (ln *Listener) File() (*os.File, error) {
	fd, err := ln.sockets[0].duplicate()
	if err != nil {
		return nil, fmt.Errorf("listener %v: %w", ln.addr, err)
	}
	return os.NewFile(uintptr(fd), "listener "+ln.addr.String()), nil
}

// Pause stops accepting without closing: connections wait in the kernel's
// queue. It is idempotent.
func (ln *Listener) Pause() { ln.setPaused(true) }

// Resume undoes Pause.
func (ln *Listener) Resume() { ln.setPaused(false) }

func (ln *Listener) setPaused(paused bool) {
	if ln.paused.Swap(paused) == paused {
		return
	}
	for _, s := range ln.sockets {
		s.loop.Post(s.watch)
	}
}

// Close stops accepting and closes the descriptor: the address is free when it
// returns. Connections stay. A second Close does nothing.
func (ln *Listener) Close() error {
	ln.reactor.remove(ln)
	for _, s := range ln.sockets {
		s.close()
		s.loop.Post(s.forget)
	}
	return nil
}

// closeAll closes descriptors that nobody else knows.
func closeAll(fds []int) {
	for _, fd := range fds {
		closeFD(fd)
	}
}
