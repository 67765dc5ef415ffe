package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
)

const kindParameters = "GatewayParameters"

// parametersOf returns the parameters that a reference names, or what is wrong with
// it.
func (r *reader) parametersOf(group, kind, namespace, name string) (*v1alpha1.GatewayParameters, string) {
	if group != v1alpha1.GroupName || kind != kindParameters {
		return nil, fmt.Sprintf("%s %q: only GatewayParameters of group headgate.dev are known; name one, or remove parametersRef", kind, name)
	}
	if namespace == "" {
		return nil, fmt.Sprintf("GatewayParameters %q: say in which namespace they are", name)
	}
	p := r.parameters(namespace, name)
	if p == nil {
		return nil, fmt.Sprintf("GatewayParameters %s/%s do not exist", namespace, name)
	}
	var is issues
	for _, e := range p.Validate() {
		is.add(Error, e.Field, "", e.ErrorBody())
	}
	if len(is) > 0 {
		return nil, fmt.Sprintf("GatewayParameters %s/%s: %s", namespace, name, summary(is))
	}
	return p, ""
}

// settings are what parameters say of a socket.
type settings struct {
	client ir.Client
	log    ir.AccessLog
}

// settingsOf puts a class's parameters and a Gateway's own ones together, field by
// field; the Gateway's count first. Either may be nil.
func settingsOf(class, own *v1alpha1.GatewayParameters) settings {
	var out settings
	for _, p := range []*v1alpha1.GatewayParameters{class, own} {
		if p == nil {
			continue
		}
		if c := p.Spec.Client; c != nil {
			overlayClient(&out.client, c)
		}
		if l := p.Spec.AccessLog; l != nil {
			if l.Mode != nil {
				out.log.Mode = logMode(*l.Mode)
			}
			if l.SamplePercent != nil {
				out.log.SamplePercent = uint8(*l.SamplePercent)
			}
		}
	}
	return out
}

// logMode returns the mode of a word that was validated.
func logMode(m v1alpha1.AccessLogMode) ir.LogMode {
	switch m {
	case v1alpha1.AccessLogErrors:
		return ir.LogErrors
	case v1alpha1.AccessLogOff:
		return ir.LogOff
	case v1alpha1.AccessLogAll:
	}
	return ir.LogAll
}

// overlayClient puts what p says into out.
func overlayClient(out *ir.Client, p *v1alpha1.ClientParameters) {
	out.HeaderTimeout = cmp.Or(p.HeaderTimeout.Value(), out.HeaderTimeout)
	out.IdleTimeout = cmp.Or(p.IdleTimeout.Value(), out.IdleTimeout)
	out.BodyTimeout = cmp.Or(p.BodyTimeout.Value(), out.BodyTimeout)
	out.WriteTimeout = cmp.Or(p.WriteTimeout.Value(), out.WriteTimeout)
	if p.MaxRequests != nil {
		out.MaxRequests = uint32(*p.MaxRequests)
	}
	if p.TrustedCIDRs != nil {
		out.TrustedProxies = prefixesOf(*p.TrustedCIDRs)
	}
	if p := p.ProxyProtocol; p != nil {
		out.ProxiedFrom = nil
		if p.Mode == v1alpha1.ProxyProtocolRequired {
			out.ProxiedFrom = prefixesOf(p.From)
		}
	}
	if l := p.Limits; l != nil {
		overlayInt(&out.MaxRequestLine, l.RequestLineBytes)
		overlayInt(&out.MaxHeaderBytes, l.HeaderBytes)
		overlayInt(&out.MaxHeaders, l.HeaderCount)
	}
}

// prefixesOf returns prefixes that were validated, never nil.
func prefixesOf(list []v1alpha1.CIDR) []netip.Prefix {
	out := []netip.Prefix{}
	for _, s := range list {
		if p, err := netip.ParsePrefix(string(s)); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func overlayInt(out *int, n *int32) {
	if n != nil {
		*out = int(*n)
	}
}

// owners returns, by socket, the Gateway whose parameters count on it.
func owners(gateways []*gatewayState) map[string]*gatewayState {
	out := make(map[string]*gatewayState)
	for _, g := range gateways {
		for _, l := range g.listeners {
			for _, name := range l.sockets {
				if first := out[name]; first == nil || g.older(first) {
					out[name] = g
				}
			}
		}
	}
	return out
}

// yield notes where parameters count that are not the Gateway's own.
func (g *gatewayState) yield(owners map[string]*gatewayState) {
	for _, l := range g.listeners {
		var others []string
		for _, name := range l.sockets {
			o := owners[name]
			if title := o.key.String(); o != g && !reflect.DeepEqual(o.settings, g.settings) && !slices.Contains(others, title) {
				others = append(others, title)
			}
		}
		if len(others) > 0 {
			l.yields = fmt.Sprintf("on port %d the parameters of Gateway %s count, which is older or first by name, and not this Gateway's; "+
				"use another port, or the same parameters", l.port, listed(others))
			l.warnings.add(Warning, l.field+".port", "", l.yields)
		}
	}
}

// older tells whether the Gateway's parameters count before the other's on a socket
// that they share.
func (g *gatewayState) older(o *gatewayState) bool {
	return cmp.Or(g.created.Compare(o.created), compareNames(g.key.Namespace, g.key.Name, o.key.Namespace, o.key.Name)) < 0
}
