package handover

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Roles of sockets.
const (
	// Traffic is a socket of the data plane.
	Traffic = "traffic"
	// Admin is the socket of the admin server.
	Admin = "admin"
)

// Socket is a listening socket that is handed over.
type Socket struct {
	// Role is Traffic or Admin. A new process closes sockets of other roles.
	Role string
	Addr netip.AddrPort
	// File is a duplicate of the descriptor; who gets the Socket closes it.
	File *os.File
}

// verify makes sure that a descriptor is what was said: a TCP socket that
// listens on the address. It came from a process of our own, but maybe of a version that
// is not born yet.
func verify(fd int, n name) error {
	addr := n.Address
	option := func(level, opt, want int, what string) error {
		got, err := unix.GetsockoptInt(fd, level, opt)
		if err != nil || got != want {
			return errors.New(what)
		}
		return nil
	}
	if err := errors.Join(
		option(unix.SOL_SOCKET, unix.SO_TYPE, unix.SOCK_STREAM, "not a stream socket"),
		option(unix.SOL_SOCKET, unix.SO_PROTOCOL, unix.IPPROTO_TCP, "not TCP"),
		option(unix.SOL_SOCKET, unix.SO_ACCEPTCONN, 1, "it does not listen"),
	); err != nil {
		return err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	var bound netip.AddrPort
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		bound = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		bound = netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
		if n.Role == Admin {
			break // net/http listens on both families
		}
		if err := option(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1, "it would take IPv4, too"); err != nil {
			return err
		}
	}
	if want := netip.AddrPortFrom(addr.Addr().WithZone(""), addr.Port()); bound != want {
		return fmt.Errorf("it listens on %v", bound)
	}
	return nil
}

// descriptor returns a file's descriptor, which is good until the file is closed.
// File.Fd would make it blocking if it came from a net.Listener, and that is a
// property of the socket: whoever accepts from it would wait in the kernel.
func descriptor(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	err = raw.Control(func(n uintptr) { fd = int(n) })
	return fd, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // a duplicate
	}
}

func closeFiles(sockets []Socket) {
	for _, s := range sockets {
		_ = s.File.Close() // a duplicate
	}
}
