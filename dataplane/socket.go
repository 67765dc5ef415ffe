package dataplane

import (
	"cmp"
	"net/netip"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/http1"
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
	client atomic.Pointer[clientBounds]
	// logTurns are the positions of the sample of logged requests, by loop.
	logTurns []turn

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

		logTurns: make([]turn, len(s.workers)),
	}
}

// update takes over a socket's protocol and certificates. Connections that are
// open keep what they began with.
func (s *socket) update(spec *ir.Socket) {
	if b := s.client.Load(); b == nil || b.log != spec.AccessLog || !reflect.DeepEqual(b.spec, spec.Client) {
		s.client.Store(s.srv.bounds(spec))
	}
	s.secure.Store(spec.Protocol == ir.ProtocolHTTPS)
	if spec.Protocol != ir.ProtocolHTTPS {
		return
	}
	if err := s.tls.Update(spec.Listeners); err != nil {
		s.srv.opts.Logger.Warn("certificates that can't be used", zap.String("socket", s.name), zap.Error(err))
	}
}

// clientBounds are what holds for the clients of a socket. Connections that are
// open look at them, too, except for whom to trust, and as what.
type clientBounds struct {
	spec        ir.Client // what they were made of
	timeouts    Timeouts
	limits      http1.Limits
	log         ir.AccessLog
	maxRequests uint32 // 0 is no limit
	trusted     []netip.Prefix
	proxies     []netip.Prefix // nil unless the PROXY protocol is spoken
}

// bounds fills in what spec leaves to the process.
func (s *Server) bounds(socket *ir.Socket) *clientBounds {
	spec := socket.Client
	b := &clientBounds{
		spec: spec, timeouts: s.opts.Timeouts, limits: s.opts.Limits, log: socket.AccessLog,
		maxRequests: s.opts.MaxRequests, trusted: s.opts.TrustedProxies, proxies: spec.ProxiedFrom,
	}
	for _, d := range []struct {
		own  *time.Duration
		spec time.Duration
	}{
		{&b.timeouts.Header, spec.HeaderTimeout}, {&b.timeouts.Idle, spec.IdleTimeout},
		{&b.timeouts.Body, spec.BodyTimeout}, {&b.timeouts.Write, spec.WriteTimeout},
	} {
		if d.spec > 0 {
			*d.own = d.spec
		}
	}
	l := &b.limits
	l.RequestLine = cmp.Or(spec.MaxRequestLine, l.RequestLine)
	l.HeaderBytes = cmp.Or(spec.MaxHeaderBytes, l.HeaderBytes)
	l.HeaderCount = cmp.Or(spec.MaxHeaders, l.HeaderCount)
	if spec.MaxRequests > 0 {
		b.maxRequests = spec.MaxRequests
	}
	if spec.TrustedProxies != nil {
		b.trusted = spec.TrustedProxies
	}
	return b
}

// timeouts are those of the socket's clients.
func (s *socket) timeouts() *Timeouts { return &s.client.Load().timeouts }

// limits are those of the heads of the socket's clients.
func (s *socket) limits() *http1.Limits { return &s.client.Load().limits }

// exhausted tells whether a connection has carried as many requests as it may.
func (s *socket) exhausted(requests uint32) bool {
	most := s.client.Load().maxRequests
	return most > 0 && requests >= most
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
