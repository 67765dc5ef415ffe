//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
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
	return r.listen(addr, false, handler)
}

// ListenBeside is like Listen, but binds beside a process of the same user that
// listens on addr with [Options.Share] or [ReusePort]. The kernel spreads
// connections over both by a hash of their addresses, and those that wait in a
// socket's queue are lost when it closes: it is for when the other one can't be
// asked for its descriptors.
func (r *Reactor) ListenBeside(addr netip.AddrPort, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	return r.listen(addr, true, handler)
}

func (r *Reactor) listen(addr netip.AddrPort, beside bool, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	if !addr.IsValid() {
		return nil, fmt.Errorf("listen: address %v is not valid", addr)
	}
	loops := []*Loop{r.acceptor}
	if r.options.Placement == ReusePort {
		loops = r.loops
	}
	var fds []int
	for range loops {
		// The first one must have the port to itself; the others join it.
		fd, err := listen(addr, beside || len(fds) > 0, r.options.Share || len(loops) > 1)
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
	ln, err := r.serveListener(addr, loops, fds, false, handler)
	if err != nil {
		closeAll(fds)
	}
	return ln, err
}

// Adopt accepts from inherited listening TCP descriptors of one address, which
// must not belong to an *os.File. The listener owns them from now on; after an
// error they are still the caller's. With [ReusePort] each loop accepts from one
// of them when there are as many as loops; else the acceptor accepts from all.
func (r *Reactor) Adopt(fds []int, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	var addr netip.AddrPort
	for i, fd := range fds {
		a, err := adoptable(fd)
		if err == nil && i > 0 && a != addr {
			err = fmt.Errorf("it listens on %v and not on %v", a, addr)
		}
		if err != nil {
			return nil, fmt.Errorf("adopt descriptor %d: %w", fd, err)
		}
		addr = a
	}
	if len(fds) == 0 {
		return nil, errors.New("adopt: no descriptor")
	}
	loops := slices.Repeat([]*Loop{r.acceptor}, len(fds))
	if r.options.Placement == ReusePort && len(fds) == len(r.loops) {
		loops = r.loops
	}
	return r.serveListener(addr, loops, fds, true, handler)
}

// adoptable checks an inherited descriptor, gives it what sockets of our own
// have, and returns its address.
func adoptable(fd int) (netip.AddrPort, error) {
	var none netip.AddrPort
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return none, os.NewSyscallError("getsockopt", err)
	}
	if listening == 0 {
		return none, errors.New("not a listening socket")
	}
	addr, errno := localAddr(fd)
	if errno != 0 || !addr.IsValid() {
		return none, errors.New("not a TCP socket")
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return none, err
	}
	return addr, inheritable(fd)
}

// maxBacklog is more than any net.core.somaxconn; the kernel takes the lesser.
const maxBacklog = 1<<16 - 1

// listen opens a listening socket, with the backlog of net.core.somaxconn. With
// beside it may share its port with others of the same user; with share others
// may share it later. SO_REUSEPORT is set after the bind for that: the bind still
// fails when somebody has the port.
func listen(addr netip.AddrPort, beside, share bool) (int, error) {
	var sa unix.RawSockaddrInet6
	family, size, err := toSockaddr(addr, &sa)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	set := func(level, option int) {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, option, 1))
		}
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEADDR)
	if family == unix.AF_INET6 {
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	}
	if beside {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT)
	}
	if err == nil {
		err = privileged(func() error {
			if errno := bind(fd, &sa, size); errno != 0 {
				return os.NewSyscallError("bind", errno)
			}
			return nil
		})
	}
	if share && !beside {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT)
	}
	if err == nil {
		err = inheritable(fd)
	}
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, maxBacklog))
	}
	if err != nil {
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

// serveListener starts to accept from fds, the i-th on loops[i]. After an error
// they are the caller's.
func (r *Reactor) serveListener(addr netip.AddrPort, loops []*Loop, fds []int, shared bool, handler func(*Loop, *Conn) Handler) (*Listener, error) {
	ln := &Listener{reactor: r, addr: addr, handler: handler}
	for i, fd := range fds {
		s := newSocket(ln, loops[i], fd)
		s.shared = shared
		ln.sockets = append(ln.sockets, s)
	}
	if !r.add(ln) {
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

// Files returns duplicates of the listening descriptors, to hand over to another
// process: one, or one per loop with [ReusePort].
func (ln *Listener) Files() ([]*os.File, error) {
	var files []*os.File
	for _, s := range ln.sockets {
		fd, err := s.duplicate()
		if err != nil {
			for _, f := range files {
				_ = f.Close() // a duplicate
			}
			return nil, fmt.Errorf("listener %v: %w", ln.addr, err)
		}
		files = append(files, os.NewFile(uintptr(fd), "listener "+ln.addr.String()))
	}
	return files, nil
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
