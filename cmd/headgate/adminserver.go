package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/dataplane/admin"
	"github.com/headgate/headgate/dataplane/handover"
)

// adminServer is the admin server on its two sockets. The TCP one is handed over:
// only the process that serves accepts from it. The Unix one is this process's,
// always.
type adminServer struct {
	server *admin.Server
	log    *zap.Logger
	local  *handover.PathListener // nil without one

	done chan struct{} // ends await; nil when nothing is awaited

	mu   sync.Mutex
	port *os.File       // the TCP socket; nil without one
	at   netip.AddrPort // where it listens
	ln   net.Listener   // while this process accepts from port
}

// listen opens the sockets, where they are named. One that was handed over is
// not accepted from before resume.
func (a *adminServer) listen(addr, path string, h *handover.Handover) error {
	if path != "" {
		ln, err := handover.Listen("unix", path)
		if err != nil {
			return fmt.Errorf("--admin-socket: %w", err)
		}
		a.local = ln
		go a.serve(ln)
	}
	if addr == "" {
		return nil
	}
	if h == nil {
		return a.bind(addr)
	}
	if a.inherit(addr, h.Inherited) {
		return nil
	}
	err := a.bind(addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	if a.inherit(addr, h.Ask) {
		return nil
	}
	// The process before this one does not hand it over. Not to start would keep
	// that one in its place for ever.
	a.log.Warn("the admin server listens when the port is free", zap.Error(err))
	a.done = make(chan struct{})
	go a.await(addr, a.done)
	return nil
}

// bind opens the TCP socket and accepts from it.
func (a *adminServer) bind(addr string) error {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // what is handed over is plain TCP
	ln, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("--admin-address: %w", err)
	}
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("--admin-address %s is not a TCP address", addr)
	}
	at, err := netip.ParseAddrPort(ln.Addr().String())
	var port *os.File
	if err == nil {
		port, err = duplicate(tcp)
	}
	if err != nil {
		ln.Close()
		return fmt.Errorf("--admin-address: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.port, a.at, a.ln = port, at, ln
	go a.serve(ln)
	a.log.Info("admin listening", zap.Stringer("address", ln.Addr()))
	return nil
}

// await binds as soon as the port is free.
func (a *adminServer) await(addr string, done <-chan struct{}) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for a.bind(addr) != nil {
		select {
		case <-every.C:
		case <-done:
			return
		}
	}
}

// inherit takes the socket of an address that was handed over; false without one.
func (a *adminServer) inherit(addr string, from func(string, netip.AddrPort) []int) bool {
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return false // net.Listen will say it
	}
	at := []netip.AddrPort{resolved.AddrPort()}
	if resolved.IP == nil {
		at = []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(resolved.Port)),
			netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(resolved.Port)),
		}
	}
	for _, k := range at {
		k = netip.AddrPortFrom(k.Addr().Unmap(), k.Port())
		fds := from(handover.Admin, k)
		for _, fd := range fds[min(1, len(fds)):] {
			_ = syscall.Close(fd) // a duplicate
		}
		if len(fds) > 0 {
			a.port, a.at = os.NewFile(uintptr(fds[0]), "admin "+addr), k
			return true
		}
	}
	return false
}

func (a *adminServer) serve(ln net.Listener) {
	if err := a.server.Serve(ln); err != nil && !errors.Is(err, net.ErrClosed) {
		a.log.Error("the admin server ended", zap.Error(err))
	}
}

// resume accepts from the TCP socket.
func (a *adminServer) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.port == nil || a.ln != nil {
		return
	}
	ln, err := net.FileListener(a.port)
	if err != nil {
		a.log.Error("the admin server can't accept", zap.Error(err))
		return
	}
	a.ln = ln
	a.server.SetKeepAlive(true)
	go a.serve(ln)
	a.log.Info("admin listening", zap.Stringer("address", ln.Addr()))
}

// pause leaves the TCP socket to another process.
func (a *adminServer) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ln == nil {
		return
	}
	a.ln.Close()
	a.ln = nil
	a.server.SetKeepAlive(false)
}

// socket returns a duplicate of the TCP socket, to hand over; false without one.
func (a *adminServer) socket() (handover.Socket, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.port == nil {
		return handover.Socket{}, false, nil
	}
	f, err := duplicate(a.port)
	return handover.Socket{Role: handover.Admin, Addr: a.at, File: f}, err == nil, err
}

// duplicate returns a duplicate of a socket, and leaves its mode alone. Fd of a
// file from net.TCPListener.File makes it blocking, for every process that has
// it, and an Accept which waits in the kernel can't be ended.
func duplicate(socket syscall.Conn) (*os.File, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	cerr := raw.Control(func(n uintptr) { fd, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(cerr, err); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "admin"), nil
}

// close ends the server and waits for its answers.
func (a *adminServer) close(ctx context.Context) error {
	var err error
	if a.local != nil {
		err = a.local.Close() // removes the path
	}
	if a.done != nil {
		close(a.done)
	}
	a.mu.Lock()
	if a.port != nil {
		_ = a.port.Close() // a duplicate
	}
	a.mu.Unlock()
	return errors.Join(err, a.server.Close(ctx))
}
