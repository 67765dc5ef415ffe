package dataplane

import (
	"net/netip"
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/route"
	"github.com/headgate/headgate/dataplane/tlsterm"
)

// socket is one listening socket at run time. It keeps its identity for as long
// as snapshots name its address.
type socket struct {
	srv    *Server
	name   string
	index  int // in generation.routes
	addr   netip.AddrPort
	port   []byte // as text, for X-Forwarded-Port
	secure atomic.Bool
	tls    *tlsterm.Socket

	listener *reactor.Listener // under Server.mu; nil until it could be bound
}

// newSocket returns a socket that is not bound. Server.mu is held.
func (s *Server) newSocket(spec *ir.Socket) *socket {
	// An index is never used again: connections of a socket that went must not
	// find another one's routes.
	index := s.made
	s.made++
	return &socket{
		srv: s, name: spec.Name, index: index, addr: spec.Addr,
		port: strconv.AppendUint(nil, uint64(spec.Addr.Port()), 10),
		tls:  s.tls.NewSocket(),
	}
}

// update takes over a socket's protocol and certificates. Connections that are
// open keep what they began with.
func (s *socket) update(spec *ir.Socket) {
	s.secure.Store(spec.Protocol == ir.ProtocolHTTPS)
	if spec.Protocol != ir.ProtocolHTTPS {
		return
	}
	if err := s.tls.Update(spec.Listeners); err != nil {
		s.srv.opts.Logger.Warn("certificates that can't be used", zap.String("socket", s.name), zap.Error(err))
	}
}

// routes returns what the socket serves now, nil when it was removed.
func (s *socket) routes() *route.Socket {
	g := s.srv.current.Load()
	if s.index >= len(g.routes) {
		return nil
	}
	return g.routes[s.index]
}

// close stops accepting. Server.mu is held.
func (s *socket) close() {
	if s.listener == nil {
		return
	}
	if err := s.listener.Close(); err != nil {
		s.srv.opts.Logger.Warn("closing a socket", zap.String("socket", s.name), zap.Error(err))
	}
	s.listener = nil
}
