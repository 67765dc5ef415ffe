//go:build linux

// Command floor is the least that a proxy on gnet's poller can do: for each
// client connection it opens one upstream connection, and relays what one side
// sends to the other with one read and one write. A request costs four system
// calls and nothing is parsed. Benchmarks compare the gateway with it.
//
// It is a yardstick, not a proxy: it is one locked thread, a short write is an
// error, and any error ends the pair of connections.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"unsafe"

	"github.com/panjf2000/gnet/v2/pkg/netpoll"
	"github.com/panjf2000/gnet/v2/pkg/socket"
	"golang.org/x/sys/unix"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	upstream := flag.String("upstream", "127.0.0.1:9000", "address to relay to")
	pin := flag.Int("pin", -1, "CPU to bind the thread to; -1: none")
	flag.Parse()
	if err := run(*listen, *upstream, *pin); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

// relay is the state of the one thread.
type relay struct {
	poller   *netpoll.Poller
	listener int
	upstream unix.Sockaddr
	family   int
	peer     []int // by descriptor: the other side's; 0 when not in use
	buf      []byte
}

func run(listen, upstream string, pin int) error {
	runtime.LockOSThread()
	if pin >= 0 {
		var set unix.CPUSet
		set.Set(pin)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pin to cpu %d: %w", pin, err)
		}
	}
	r, err := newRelay(listen, upstream)
	if err != nil {
		return err
	}
	return r.poller.Polling(r.onEvent)
}

// newRelay returns a relay that listens. Its descriptors live as long as the
// process.
func newRelay(listen, upstream string) (*relay, error) {
	r := &relay{buf: make([]byte, 64<<10)}
	if err := r.resolve(upstream); err != nil {
		return nil, err
	}
	var err error
	if r.poller, err = netpoll.OpenPoller(); err != nil {
		return nil, err
	}
	r.listener, _, err = socket.TCPSocket("tcp", listen, true, []socket.Option[int]{
		{SetSockOpt: socket.SetReuseAddr, Opt: 1},
		{SetSockOpt: socket.SetNoDelay, Opt: 1}, // accepted sockets inherit it
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", listen, err)
	}
	return r, r.poller.AddRead(&netpoll.PollAttachment{FD: r.listener}, false)
}

func (r *relay) resolve(upstream string) error {
	addr, err := netip.ParseAddrPort(upstream)
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	if addr.Addr().Is4() {
		r.family, r.upstream = unix.AF_INET, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	} else {
		r.family, r.upstream = unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	return nil
}

// onEvent relays once. It never ends the poller.
func (r *relay) onEvent(fd int, _ netpoll.IOEvent, _ netpoll.IOFlags) error {
	if fd == r.listener {
		if err := r.accept(); err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
		}
		return nil
	}
	if fd >= len(r.peer) || r.peer[fd] == 0 {
		return nil // closed by an event of the same batch
	}
	n, errno := raw(unix.SYS_READ, fd, r.buf)
	if errno == unix.EAGAIN {
		return nil
	}
	if errno != 0 || n == 0 {
		r.close(fd)
		return nil
	}
	if m, errno := raw(unix.SYS_WRITE, r.peer[fd], r.buf[:n]); errno != 0 || m != n {
		r.close(fd)
	}
	return nil
}

// accept takes one client and connects it to the upstream. The connect blocks:
// upstreams of benchmarks are near.
func (r *relay) accept() error {
	client, _, err := socket.Accept(r.listener)
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	server, err := unix.Socket(r.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("socket: %w", err), unix.Close(client))
	}
	err = unix.Connect(server, r.upstream)
	for _, step := range []func() error{
		func() error { return unix.SetNonblock(server, true) },
		func() error { return socket.SetNoDelay(server, 1) },
		func() error { return r.poller.AddRead(&netpoll.PollAttachment{FD: client}, false) },
		func() error { return r.poller.AddRead(&netpoll.PollAttachment{FD: server}, false) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("connect: %w", err), unix.Close(client), unix.Close(server))
	}
	for len(r.peer) <= max(client, server) {
		r.peer = append(r.peer, 0)
	}
	r.peer[client], r.peer[server] = server, client
	return nil
}

// close ends both sides of a pair.
func (r *relay) close(fd int) {
	other := r.peer[fd]
	r.peer[fd], r.peer[other] = 0, 0
	_ = unix.Close(fd)
	_ = unix.Close(other)
}

// raw makes a system call that can't block, without telling the scheduler.
func raw(trap uintptr, fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), errno
}
