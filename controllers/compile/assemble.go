package compile

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
)

// open names the sockets of the Gateway's listeners.
func (g *gatewayState) open() {
	if !g.valid() {
		return
	}
	for _, l := range g.listeners {
		if !l.usable() {
			continue
		}
		for _, b := range g.addresses.bound {
			l.sockets = append(l.sockets, netip.AddrPortFrom(b.addr, uint16(l.port)).String())
			l.served = true
		}
	}
}

// keep takes over from old, the last meaning of the Gateway or nil, what is the
// same.
func (g *gatewayState) keep(old *gatewayState) {
	if old == nil {
		return
	}
	for _, l := range g.listeners {
		i := slices.IndexFunc(old.listeners, func(o *listenerState) bool { return o.name == l.name })
		if i < 0 {
			continue
		}
		o := old.listeners[i]
		if reflect.DeepEqual(o.listener, l.listener) {
			l.listener = o.listener
		}
		if reflect.DeepEqual(o.tls, l.tls) {
			l.tls = o.tls
		}
	}
	g.last = old.last
}

// assemble puts the snapshot together, out of the parts of the last one where
// they are the same.
func (c *Compiler) assemble(attached map[*listener][]*ir.Route) {
	listeners := make(map[*listener]*ir.Listener)
	bySocket := make(map[string]*ir.Socket)
	for _, g := range c.gateways {
		for _, l := range g.listeners {
			if len(l.sockets) == 0 {
				continue
			}
			now := &ir.Listener{Name: l.id(), Hostname: l.hostname, TLS: l.tls, Routes: attached[l.listener]}
			if was := c.listeners[l.listener]; was != nil && was.TLS == now.TLS && slices.Equal(was.Routes, now.Routes) {
				now = was
			}
			listeners[l.listener] = now
			for _, name := range l.sockets {
				s := bySocket[name]
				if s == nil {
					s = &ir.Socket{Name: name, Addr: netip.MustParseAddrPort(name), Protocol: l.protocol}
					bySocket[name] = s
				}
				s.Listeners = append(s.Listeners, now)
			}
		}
	}
	c.listeners = listeners

	next := &ir.Snapshot{Process: c.process}
	for _, s := range bySocket {
		of := c.owners[s.Name].settings
		s.Client, s.AccessLog = of.client, of.log
		slices.SortFunc(s.Listeners, func(a, b *ir.Listener) int { return strings.Compare(a.Name, b.Name) })
		next.Sockets = append(next.Sockets, c.keptSocket(s))
	}
	slices.SortFunc(next.Sockets, func(a, b *ir.Socket) int { return strings.Compare(a.Name, b.Name) })
	next.Clusters = slices.Grow(next.Clusters, len(c.clusterOrder))
	for _, cs := range c.clusterOrder {
		next.Clusters = append(next.Clusters, cs.cluster)
	}
	if c.snapshot == nil || c.snapshot.Process != next.Process || !slices.Equal(c.snapshot.Sockets, next.Sockets) || !slices.Equal(c.snapshot.Clusters, next.Clusters) {
		c.snapshot = next
	}
}

// keptSocket returns the last snapshot's socket when it is the same, else s.
func (c *Compiler) keptSocket(s *ir.Socket) *ir.Socket {
	if c.snapshot == nil {
		return s
	}
	i, ok := slices.BinarySearchFunc(c.snapshot.Sockets, s.Name, func(o *ir.Socket, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return s
	}
	if o := c.snapshot.Sockets[i]; o.Protocol == s.Protocol && o.AccessLog == s.AccessLog && reflect.DeepEqual(o.Client, s.Client) && slices.Equal(o.Listeners, s.Listeners) {
		return o
	}
	return s
}
