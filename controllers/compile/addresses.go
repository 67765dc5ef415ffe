package compile

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Addresses says how Gateways come to their addresses. A Gateway that names
// addresses in its spec gets those; one that does not gets one of its own from
// the pool, if there is a pool, and else shares Bind with its likes.
type Addresses struct {
	// Bind is listened on for Gateways that name no address, when there is no
	// pool. Unspecified addresses mean every address of the family.
	Bind []netip.Addr
	// Node are the addresses to report where an unspecified one is bound: the
	// addresses by which this host is reached.
	Node []netip.Addr
	// Pool are ranges of which each Gateway that names no address gets one
	// address for itself.
	Pool []netip.Prefix
	// Service, when it is named, is a Service of type LoadBalancer that leads to
	// this process: its addresses are those of all Gateways, which listen on Bind
	// and can have only the ports that it has. There is no pool then.
	Service types.NamespacedName
}

// boundAddress is an address of a Gateway.
type boundAddress struct {
	addr netip.Addr // what is bound
	spec bool       // the Gateway named it
}

// addressPlan is what a Gateway's spec.addresses come to.
type addressPlan struct {
	bound  []boundAddress
	report []netip.Addr
	hosts  []string // to report, besides addresses
	// unsupported and unusable are faults of the spec; missing says that no
	// address could be given.
	unsupported, unusable issues
	missing               string
}

// plan works out a Gateway's addresses. assigned is what the pool gave to it.
func (a Addresses) plan(gw *gatewayv1.Gateway, assigned netip.Addr) addressPlan {
	var p addressPlan
	empty := len(gw.Spec.Addresses) == 0
	for i, want := range gw.Spec.Addresses {
		addr, ok := p.parse(fmt.Sprintf("spec.addresses[%d]", i), want)
		switch {
		case !ok:
		case addr.IsValid():
			p.add(a, boundAddress{addr, true})
		default:
			empty = true
		}
	}
	if !empty {
		return p
	}
	if len(a.Pool) > 0 {
		if !assigned.IsValid() {
			p.missing = "the address pool is used up; delete a Gateway, name an address in spec.addresses, or enlarge the pool"
			return p
		}
		p.add(a, boundAddress{assigned, false})
		return p
	}
	for _, addr := range a.Bind {
		if addr.IsValid() {
			p.add(a, boundAddress{addr.Unmap(), false})
		}
	}
	if len(p.bound) == 0 && len(p.unusable) == 0 {
		p.missing = "Headgate has no address to give; name one in spec.addresses"
	}
	return p
}

// parse reads an address of a spec; it is the zero value when any will do. It is
// not ok when it is at fault, which is noted.
func (p *addressPlan) parse(field string, want gatewayv1.GatewaySpecAddress) (addr netip.Addr, ok bool) {
	if want.Type != nil && *want.Type != gatewayv1.IPAddressType {
		p.unsupported.add(Error, field, string(gatewayv1.GatewayReasonUnsupportedAddress),
			fmt.Sprintf("type %q is not supported; use IPAddress", *want.Type))
		return addr, false
	}
	if want.Value == "" {
		return addr, true
	}
	addr, err := netip.ParseAddr(want.Value)
	if err != nil || addr.Zone() != "" {
		p.unusable.add(Error, field, string(gatewayv1.GatewayReasonAddressNotUsable), fmt.Sprintf("%q is not an IP address", want.Value))
		return addr, false
	}
	return addr.Unmap(), true
}

func (p *addressPlan) add(a Addresses, b boundAddress) {
	for i, have := range p.bound {
		if have.addr == b.addr {
			p.bound[i].spec = have.spec || b.spec
			return
		}
	}
	p.bound = append(p.bound, b)
	p.report = appendReported(p.report, a.Node, b.addr)
}

// appendReported appends what a bound address is reported as.
func appendReported(list, node []netip.Addr, bound netip.Addr) []netip.Addr {
	if !bound.IsUnspecified() {
		return appendOnce(list, bound)
	}
	for _, n := range node {
		if n = n.Unmap(); n.Is4() == bound.Is4() {
			list = appendOnce(list, n)
		}
	}
	return list
}

func appendOnce(list []netip.Addr, a netip.Addr) []netip.Addr {
	if slices.Contains(list, a) {
		return list
	}
	return append(list, a)
}

// statusAddresses is the form that a Gateway's status wants. The API server takes
// 16 at most.
func statusAddresses(list []netip.Addr, hosts []string) []gatewayv1.GatewayStatusAddress {
	const most = 16
	var out []gatewayv1.GatewayStatusAddress
	for _, a := range list {
		kind := gatewayv1.IPAddressType
		out = append(out, gatewayv1.GatewayStatusAddress{Type: &kind, Value: a.String()})
	}
	for _, h := range hosts {
		kind := gatewayv1.HostnameAddressType
		out = append(out, gatewayv1.GatewayStatusAddress{Type: &kind, Value: h})
	}
	return out[:min(len(out), most)]
}

// assign gives each Gateway that needs one an address of the pool. Gateways keep
// what they have: what the last report says, else what their status says. The
// older Gateway chooses first.
func (a Addresses) assign(gateways []*gatewayv1.Gateway, had map[types.NamespacedName]netip.Addr) map[types.NamespacedName]netip.Addr {
	if len(a.Pool) == 0 {
		return nil
	}
	var need []*gatewayv1.Gateway
	taken := make(map[netip.Addr]bool)
	for _, gw := range gateways {
		empty := len(gw.Spec.Addresses) == 0
		for _, want := range gw.Spec.Addresses {
			if addr, err := netip.ParseAddr(want.Value); err == nil {
				taken[addr.Unmap()] = true
			} else if want.Value == "" {
				empty = true
			}
		}
		if empty {
			need = append(need, gw)
		}
	}
	slices.SortStableFunc(need, func(x, y *gatewayv1.Gateway) int {
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return compareObjects(x, y)
	})
	given := make(map[types.NamespacedName]netip.Addr, len(need))
	keep := func(gw *gatewayv1.Gateway, addr netip.Addr) {
		k := keyOf(gw)
		if _, done := given[k]; !done && a.pooled(addr) && !taken[addr] {
			given[k] = addr
			taken[addr] = true
		}
	}
	for _, gw := range need {
		if addr, ok := had[keyOf(gw)]; ok {
			keep(gw, addr)
		}
	}
	for _, gw := range need {
		for _, s := range gw.Status.Addresses {
			if addr, err := netip.ParseAddr(s.Value); err == nil {
				keep(gw, addr.Unmap())
			}
		}
	}
	next := a.free(taken)
	for _, gw := range need {
		if _, done := given[keyOf(gw)]; done {
			continue
		}
		addr := next()
		if !addr.IsValid() {
			break
		}
		given[keyOf(gw)] = addr
	}
	return given
}

// pooled tells whether the pool has the address.
func (a Addresses) pooled(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Pool, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// free returns a function that returns the next address of the pool that is not
// taken, from the lowest up, and the zero value at the end. The first and the
// last address of an IPv4 range of more than two are left out: they name the
// network and its broadcast.
func (a Addresses) free(taken map[netip.Addr]bool) func() netip.Addr {
	i := 0
	var addr netip.Addr
	return func() netip.Addr {
		for i < len(a.Pool) {
			p := a.Pool[i].Masked()
			if !addr.IsValid() {
				addr = p.Addr()
				if p.Addr().Is4() && p.Bits() < 31 {
					addr = addr.Next()
				}
			} else {
				addr = addr.Next()
			}
			last := p.Addr().Is4() && p.Bits() < 31 && !p.Contains(addr.Next())
			if !addr.IsValid() || !p.Contains(addr) || last {
				i++
				addr = netip.Addr{}
				continue
			}
			if !taken[addr] {
				return addr
			}
		}
		return netip.Addr{}
	}
}
