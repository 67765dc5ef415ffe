package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/dataplane/ir"
)

// clusterKey is a port of a Service.
type clusterKey struct {
	namespace, service string
	port               int32
}

// String is the cluster's name in the snapshot.
func (k clusterKey) String() string {
	return k.namespace + "/" + k.service + ":" + strconv.Itoa(int(k.port))
}

func (k clusterKey) compare(o clusterKey) int {
	return cmp.Or(compareNames(k.namespace, k.service, o.namespace, o.service), cmp.Compare(k.port, o.port))
}

// clusterState is a cluster, kept until its Service or its slices change.
type clusterState struct {
	deps     []dep
	cluster  *ir.Cluster
	problems []Problem
	used     uint64 // the last compilation that needed it
}

// compileCluster gathers the endpoints of a Service port.
func compileCluster(r *reader, key clusterKey) *clusterState {
	e := &endpoints{reader: r, key: key, found: make(map[string]ir.Endpoint)}
	st := &clusterState{cluster: &ir.Cluster{Name: key.String(), Protocol: ir.UpstreamHTTP1}}
	svc := r.service(key.namespace, key.service)
	if svc != nil {
		if p := servicePort(svc, key.port); p != nil {
			for _, s := range r.endpointSlices(key.namespace, key.service) {
				e.slice(s, p)
			}
			if policy := r.policy(key.namespace, key.service, p.Name); policy != nil {
				applyPolicy(policy, st.cluster)
			}
		}
	}
	ready := 0
	for _, x := range e.found {
		st.cluster.Endpoints = append(st.cluster.Endpoints, x)
		if !x.Draining {
			ready++
		}
	}
	slices.SortFunc(st.cluster.Endpoints, func(a, b ir.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	if ready == 0 {
		st.problems = append(st.problems, Problem{
			Severity: Warning, Kind: kindService, Namespace: key.namespace, Name: key.service, Reason: "NoReadyEndpoints",
			Message: fmt.Sprintf("port %d has no ready endpoint, so requests for it are answered 503; see its EndpointSlices", key.port),
		})
	}
	st.problems = append(st.problems, e.problems...)
	st.deps = r.deps
	return st
}

// endpoints gathers the endpoints of a cluster from several slices.
type endpoints struct {
	*reader
	key      clusterKey
	found    map[string]ir.Endpoint
	problems []Problem
}

func (e *endpoints) warn(s *discoveryv1.EndpointSlice, field, format string, args ...any) {
	e.problems = append(e.problems, Problem{
		Severity: Warning, Kind: kindSlice, Namespace: s.Namespace, Name: s.Name, Field: field,
		Message: fmt.Sprintf(format, args...),
	})
}

// slice adds the endpoints of one slice. Its port is the one with the name of the
// Service's port.
func (e *endpoints) slice(s *discoveryv1.EndpointSlice, p *corev1.ServicePort) {
	port, ok := slicePort(s, p)
	if !ok {
		if len(s.Endpoints) > 0 {
			e.warn(s, "ports", "has no TCP port named %q, as port %d of Service %s/%s is; its endpoints are not used for it",
				p.Name, p.Port, e.key.namespace, e.key.service)
		}
		return
	}
	for i := range s.Endpoints {
		x, field := &s.Endpoints[i], fmt.Sprintf("endpoints[%d]", i)
		draining, use := usable(x.Conditions)
		if !use || len(x.Addresses) == 0 {
			continue
		}
		if len(x.Addresses) > 1 {
			e.warn(s, field+".addresses", "only the first address counts; make an endpoint of each")
		}
		ep, fault := e.endpoint(s.AddressType, x.Addresses[0], port)
		if fault != "" {
			e.warn(s, field+".addresses", "address %q %s; it is left out", x.Addresses[0], fault)
			continue
		}
		ep.Draining = draining
		// In two slices while it moves from one to the other: ready wins.
		if have, ok := e.found[ep.Address]; !ok || have.Draining {
			e.found[ep.Address] = ep
		}
	}
}

// slicePort returns the number of the slice's port that belongs to p.
func slicePort(s *discoveryv1.EndpointSlice, p *corev1.ServicePort) (uint16, bool) {
	for _, q := range s.Ports {
		name := ""
		if q.Name != nil {
			name = *q.Name
		}
		if name != p.Name || q.Protocol != nil && *q.Protocol != corev1.ProtocolTCP {
			continue
		}
		number := p.Port
		switch {
		case q.Port != nil:
			number = *q.Port
		case p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "":
			continue // a name that only a Pod's spec could resolve
		case p.TargetPort.IntVal != 0:
			number = p.TargetPort.IntVal
		}
		if number < 1 || number > 65535 {
			continue
		}
		return uint16(number), true
	}
	return 0, false
}

// usable says what an endpoint's conditions mean. Nil is unknown, and means ready
// and serving.
func usable(c discoveryv1.EndpointConditions) (draining, use bool) {
	if c.Ready == nil || *c.Ready {
		return false, true
	}
	// A terminating endpoint that still serves finishes what it has. It gets
	// nothing new, not even when it is the last one: Gateway API asks for 503
	// when no endpoint is ready.
	serving := c.Serving != nil && *c.Serving
	return true, serving && c.Terminating != nil && *c.Terminating
}

// endpoint reads one address.
func (e *endpoints) endpoint(kind discoveryv1.AddressType, address string, port uint16) (ir.Endpoint, string) {
	trust := e.in.Options.TrustEndpoints
	if kind == discoveryv1.AddressTypeFQDN {
		name := strings.ToLower(strings.TrimSuffix(address, "."))
		if !trust {
			return ir.Endpoint{}, "is a name, which is not followed in a cluster"
		}
		if fault := preciseFault(name); fault != "" {
			return ir.Endpoint{}, fault
		}
		return ir.Endpoint{Address: name + ":" + strconv.Itoa(int(port)), Weight: 1}, ""
	}
	ip, err := netip.ParseAddr(address)
	ip = ip.Unmap()
	switch {
	case err != nil:
		return ir.Endpoint{}, "is not an IP address"
	case ip.Is4() != (kind == discoveryv1.AddressTypeIPv4):
		return ir.Endpoint{}, "is not of the slice's addressType " + string(kind)
	case ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != "":
		return ir.Endpoint{}, "is not the address of a host"
	case !trust && (ip.IsLoopback() || ip.IsLinkLocalUnicast()):
		return ir.Endpoint{}, "is of the gateway's own host"
	}
	ap := netip.AddrPortFrom(ip, port)
	return ir.Endpoint{Address: ap.String(), AddrPort: ap, Weight: 1}, ""
}
