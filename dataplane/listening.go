package dataplane

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/reactor"
)

// Predecessor is the process before this one, which may hand its listening
// sockets over. Descriptors belong to the caller.
type Predecessor interface {
	// Inherited returns the sockets of an address that were handed over and not
	// fetched yet, often none.
	Inherited(addr netip.AddrPort) []int
	// Ask asks again, for an address that is taken. It may take some seconds.
	Ask(addr netip.AddrPort) []int
	// Beside tells whether a port that is taken may be shared with whoever has
	// it, by SO_REUSEPORT.
	Beside() bool
}

// ListeningSocket is a listening socket to hand over. Who gets it closes File.
type ListeningSocket struct {
	Addr netip.AddrPort
	File *os.File
}

// Sockets returns duplicates of the listening sockets. An address has several
// with the placement [reactor.ReusePort].
func (s *Server) Sockets() ([]ListeningSocket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ListeningSocket
	for _, sock := range s.sockets {
		if sock.listener == nil {
			continue
		}
		files, err := sock.listener.Files()
		if err != nil {
			for _, k := range out {
				_ = k.File.Close() // a duplicate
			}
			return nil, err
		}
		for _, f := range files {
			out = append(out, ListeningSocket{Addr: sock.addr, File: f})
		}
	}
	return out, nil
}

// Pause stops accepting, but keeps the sockets: another process accepts from
// them. Snapshots are still taken, but sockets that they add are left to the
// other process and not said to have failed.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return
	}
	s.paused = true
	for _, sock := range s.sockets {
		if sock.listener != nil {
			sock.listener.Pause()
		}
	}
}

// Resume undoes Pause, and opens what was left to the other process. It does
// nothing after Drain.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() || !s.paused {
		return
	}
	s.paused = false
	for _, sock := range s.sockets {
		if sock.listener != nil && !s.shut() {
			sock.listener.Resume()
		}
	}
	failed := s.open(s.current.Load().snapshot)
	for name, err := range failed {
		s.opts.Logger.Error("a socket that was left to the other process can't be opened yet", zap.String("socket", name), zap.Error(err))
	}
	if len(failed) > 0 {
		s.done.Go(s.reopen)
	}
}

// reopenEvery is how often sockets that Resume could not open are tried.
const reopenEvery = time.Second

// reopen opens what Resume could not: whoever applied the snapshot was told that
// all is well, and does not come again.
func (s *Server) reopen() {
	every := time.NewTicker(reopenEvery)
	defer every.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-every.C:
		}
		s.mu.Lock()
		done := s.paused || len(s.open(s.current.Load().snapshot)) == 0
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// listen opens a socket: the one that was handed over, or a new one. mu is held.
func (s *Server) listen(sock *socket) (*reactor.Listener, error) {
	p := s.opts.Predecessor
	if p == nil {
		return s.reactor.Listen(sock.addr, sock.accept)
	}
	if l := s.adopt(sock, p.Inherited(sock.addr)); l != nil {
		return l, nil
	}
	l, err := s.reactor.Listen(sock.addr, sock.accept)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if l := s.adopt(sock, p.Ask(sock.addr)); l != nil {
		return l, nil
	}
	if !p.Beside() {
		return nil, err
	}
	l, berr := s.reactor.ListenBeside(sock.addr, sock.accept)
	if berr != nil {
		return nil, err
	}
	s.opts.Logger.Warn("listening beside a process that does not answer; when it closes its socket, connections that wait there are lost",
		zap.String("socket", sock.name))
	return l, nil
}

// adopt makes a listener of descriptors, nil when there are none that serve.
func (s *Server) adopt(sock *socket, fds []int) *reactor.Listener {
	if len(fds) == 0 {
		return nil
	}
	l, err := s.reactor.Adopt(fds, sock.accept)
	if err != nil {
		for _, fd := range fds {
			_ = syscall.Close(fd) // a duplicate
		}
		s.opts.Logger.Warn("a socket that was handed over can't be used", zap.String("socket", sock.name), zap.Error(err))
		return nil
	}
	return l
}
