package compile

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// place is where listeners meet: a port of an address, or a port of a Gateway
// that has no address.
type place struct {
	addr    netip.Addr
	gateway types.NamespacedName
	port    int32
}

// resolveConflicts finds the listeners that can't be told apart. None of them
// wins, whether they are of one Gateway or of several that share an address:
// Gateway API leaves no choice, and an order by age would let a deletion swap the
// traffic of two teams.
func resolveConflicts(states []*gatewayState) {
	groups := make(map[place][]*listenerState)
	var order []place // for messages that come out the same every time
	add := func(p place, l *listenerState) {
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], l)
	}
	for _, g := range states {
		for _, l := range g.listeners {
			if len(l.accept) > 0 {
				continue
			}
			if len(g.addresses.bound) == 0 || !g.valid() {
				add(place{gateway: g.key, port: l.port}, l)
				continue
			}
			for _, b := range g.addresses.bound {
				add(place{addr: b.addr, port: l.port}, l)
			}
		}
	}
	for _, p := range order {
		clash(groups[p])
	}
	for _, p := range order {
		overlap(groups[p])
	}
}

// clash marks the listeners of one place that are in conflict.
func clash(group []*listenerState) {
	protocols := make(map[ir.Protocol][]*listenerState)
	hosts := make(map[string][]*listenerState)
	for _, l := range group {
		protocols[l.protocol] = append(protocols[l.protocol], l)
		hosts[l.hostname] = append(hosts[l.hostname], l)
	}
	for _, l := range group {
		if len(protocols) > 1 {
			var others []string
			for _, o := range group {
				if o.protocol != l.protocol {
					others = append(others, o.title(l)+" with "+o.protocol.String())
				}
			}
			l.clash = &conflict{gatewayv1.ListenerReasonProtocolConflict,
				fmt.Sprintf("Port %d is used with %s here and by %s; give one of them another port", l.port, l.protocol, listed(others))}
			continue
		}
		if same := hosts[l.hostname]; len(same) > 1 && l.clash == nil {
			var others []string
			for _, o := range same {
				if o != l {
					others = append(others, o.title(l))
				}
			}
			what := fmt.Sprintf("hostname %q", l.hostname)
			if l.hostname == "" {
				what = "any hostname"
			}
			l.clash = &conflict{gatewayv1.ListenerReasonHostnameConflict,
				fmt.Sprintf("Port %d with %s is also asked for by %s; give one of them another port, hostname or address", l.port, what, listed(others))}
		}
	}
}

// overlap marks the HTTPS listeners of one place whose hostnames overlap: a
// client may use one's connection for the other.
func overlap(group []*listenerState) {
	for i, a := range group {
		if a.protocol != ir.ProtocolHTTPS || !a.usable() {
			continue
		}
		for _, b := range group[i+1:] {
			if !b.usable() {
				continue
			}
			if _, ok := intersect(a.hostname, b.hostname); ok {
				a.overlapWith(b)
				b.overlapWith(a)
			}
		}
	}
}

func (l *listenerState) overlapWith(o *listenerState) {
	if t := o.title(l); !slices.Contains(l.overlaps, t) {
		l.overlaps = append(l.overlaps, t)
	}
}

// title names the listener in a message about another one.
func (l *listenerState) title(about *listenerState) string {
	if l.gateway == about.gateway {
		return "listener " + string(l.name)
	}
	return fmt.Sprintf("listener %s of Gateway %s", l.name, l.gateway)
}
