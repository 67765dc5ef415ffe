package compile

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
)

// Compile compiles an input on its own.
func Compile(in Input) (*ir.Snapshot, *Report) { return new(Compiler).Compile(in) }

// Compiler compiles one input after the other and keeps what it can: parts that
// mean the same as before come out as the same pointers. Its results are equal
// to those of [Compile]. The zero value is ready. It is for one goroutine.
type Compiler struct {
	last Input
	all  bool // nothing of the last run may be taken unseen
	runs uint64

	grants    map[string][]*gatewayv1.ReferenceGrant
	slices    map[types.NamespacedName][]*discoveryv1.EndpointSlice
	byService policySet
	rivals    []rival
	certs     map[types.NamespacedName]*keptCertificate
	classes   map[string]*class
	process   ir.Process
	teller    string // the class that tells of the process
	assigned  map[types.NamespacedName]netip.Addr

	gateways    []*gatewayState
	owners      map[string]*gatewayState // of sockets
	gatewayDeps []dep
	strays      []Problem // of Gateways whose class does not exist
	parents     map[types.NamespacedName]*parent

	routes       []*routeState // parallel to last.HTTPRoutes
	clusters     map[clusterKey]*clusterState
	clusterOrder []*clusterState
	policies     *policyState

	listeners map[*listener]*ir.Listener
	snapshot  *ir.Snapshot
}

// keptCertificate is the meaning of a Secret.
type keptCertificate struct {
	secret *corev1.Secret
	*certificate
}

// Compile compiles the input.
func (c *Compiler) Compile(in Input) (*ir.Snapshot, *Report) {
	in = in.normalised(&c.last)
	c.runs++
	ch := c.changes(&in)
	read := reader{in: &in, grants: c.grants, slices: c.slices, policies: c.byService}
	c.compileGateways(read, ch)
	read.parents = c.parents
	c.compileRoutes(read, ch)
	attached := c.attach()
	c.compileClusters(read, ch)
	c.compilePolicies(read, ch)
	c.assemble(attached)
	c.last = in
	return c.snapshot, c.report(attached)
}

// changes finds what differs from the last input, and brings the indexes up to
// date.
func (c *Compiler) changes(in *Input) *changes {
	ch := new(changes)
	if c.runs == 1 {
		c.slices = make(map[types.NamespacedName][]*discoveryv1.EndpointSlice)
		c.certs = make(map[types.NamespacedName]*keptCertificate)
		c.clusters = make(map[clusterKey]*clusterState)
	}
	c.all = c.runs == 1 || !reflect.DeepEqual(c.last.Options, in.Options)
	diffInto(ch, depClass, c.last.Classes, in.Classes, sameSpec)
	diffInto(ch, depGateway, c.last.Gateways, in.Gateways, sameSpec)
	diffInto(ch, depSpace, c.last.Namespaces, in.Namespaces, sameObject)
	diff(c.last.Services, in.Services, sameObject, func(was, is *corev1.Service) {
		if isBalancer(was) || isBalancer(is) {
			ch.add(depRivals, "", "")
		}
		if is == nil {
			is = was
		}
		ch.add(depService, is.Namespace, is.Name)
	})
	if c.all || ch.has([]dep{{kind: depRivals}}) {
		c.rivals = findRivals(in.Services, in.Options.Addresses.Service)
	}
	diffInto(ch, depParameters, c.last.Parameters, in.Parameters, sameSpec)
	diffInto(ch, depSecret, c.last.Secrets, in.Secrets, sameObject)
	regrant := c.grants == nil
	diff(c.last.Grants, in.Grants, sameSpec, func(was, is *gatewayv1.ReferenceGrant) {
		regrant = true
		if is == nil {
			is = was
		}
		ch.add(depGrants, is.Namespace, "")
	})
	if regrant {
		c.grants = make(map[string][]*gatewayv1.ReferenceGrant)
		for _, g := range in.Grants {
			c.grants[g.Namespace] = append(c.grants[g.Namespace], g)
		}
	}
	renew := c.byService == nil
	diff(c.last.BackendPolicies, in.BackendPolicies, sameSpec, func(was, is *v1alpha1.BackendPolicy) {
		renew = true
		for _, p := range []*v1alpha1.BackendPolicy{was, is} {
			if p == nil {
				continue
			}
			ch.add(depPolicies, p.Namespace, "")
			for _, service := range targetsOf(p) {
				ch.add(depPolicies, p.Namespace, service)
			}
		}
	})
	if renew {
		c.byService = indexPolicies(in.BackendPolicies)
	}
	diff(c.last.EndpointSlices, in.EndpointSlices, sameObject, func(was, is *discoveryv1.EndpointSlice) {
		for _, s := range []*discoveryv1.EndpointSlice{was, is} {
			if s != nil {
				ch.add(depSlices, s.Namespace, serviceOf(s))
				c.index(s, s == is)
			}
		}
	})
	return ch
}

// index puts a slice into the index by Service, or takes it out.
func (c *Compiler) index(s *discoveryv1.EndpointSlice, in bool) {
	k := types.NamespacedName{Namespace: s.Namespace, Name: serviceOf(s)}
	list := c.slices[k]
	i, have := slices.BinarySearchFunc(list, s, compareObjects)
	switch {
	case in && have:
		list[i] = s
	case in:
		list = slices.Insert(list, i, s)
	case have:
		list = slices.Delete(list, i, i+1)
	}
	c.slices[k] = list
	if len(list) == 0 {
		delete(c.slices, k)
	}
}

// certificate returns what a Secret means as a certificate. Parsing a key pair is
// dear, so it is done once for each version of a Secret.
func (c *Compiler) certificate(s *corev1.Secret) *certificate {
	k := keyOf(s)
	if have := c.certs[k]; have != nil && sameObject(have.secret, s) {
		return have.certificate
	}
	kept := &keptCertificate{s, compileSecret(s)}
	if have := c.certs[k]; have != nil && reflect.DeepEqual(have.cert, kept.cert) {
		kept.cert = have.cert
	}
	c.certs[k] = kept
	return kept.certificate
}

// compileGateways compiles classes and Gateways, all of them when one changed:
// they are few, and conflicts are between them.
func (c *Compiler) compileGateways(r reader, ch *changes) {
	assigned := r.in.Options.Addresses.assign(c.ours(r.in), r.in.Assigned)
	changed := c.all || !maps.Equal(assigned, c.assigned) || ch.has(c.gatewayDeps)
	for d := range ch.all {
		changed = changed || d.kind == depClass || d.kind == depGateway || d.kind == depRivals
	}
	if !changed {
		return
	}
	c.assigned = assigned
	r.deps = nil
	classes := make(map[string]*class)
	for _, gc := range r.in.Classes {
		if cl := compileClass(&r, gc); cl != nil {
			classes[gc.Name] = cl
		}
	}
	c.process, c.teller = settleProcess(classes)
	for name, cl := range classes {
		if old := c.classes[name]; old != nil && reflect.DeepEqual(old.report, cl.report) {
			cl.report = old.report
		}
	}
	c.classes = classes

	old := make(map[types.NamespacedName]*gatewayState, len(c.gateways))
	for _, g := range c.gateways {
		old[g.key] = g
	}
	c.gateways, c.strays = nil, nil
	for _, gw := range r.in.Gateways {
		if cl := classes[string(gw.Spec.GatewayClassName)]; cl != nil {
			c.gateways = append(c.gateways, c.compileGateway(&r, gw, cl, assigned[keyOf(gw)]))
			continue
		}
		if find(r.in.Classes, "", string(gw.Spec.GatewayClassName)) == nil {
			var stray issues
			stray.add(Error, "spec.gatewayClassName", "", "GatewayClass "+string(gw.Spec.GatewayClassName)+" does not exist, so nobody serves the Gateway")
			c.strays = append(c.strays, stray.problems(kindGateway, gw.Namespace, gw.Name)...)
		}
	}
	c.gatewayDeps = r.deps
	resolveConflicts(c.gateways)

	for _, g := range c.gateways {
		g.open()
	}
	c.owners = owners(c.gateways)
	parents := make(map[types.NamespacedName]*parent, len(c.gateways))
	for _, g := range c.gateways {
		g.meet(c.rivals)
		g.yield(c.owners)
		g.keep(old[g.key])
		g.problems = g.list()
		p := &parent{}
		for _, l := range g.listeners {
			p.listeners = append(p.listeners, l.listener)
		}
		if was := c.parents[g.key]; was != nil && slices.Equal(was.listeners, p.listeners) {
			p = was
		} else {
			ch.add(depParent, g.key.Namespace, g.key.Name)
		}
		parents[g.key] = p
	}
	for k := range c.parents {
		if parents[k] == nil {
			ch.add(depParent, k.Namespace, k.Name)
		}
	}
	c.parents = parents
	c.forgetCertificates(r.in)
}

// ours returns the Gateways of our classes.
func (c *Compiler) ours(in *Input) []*gatewayv1.Gateway {
	if len(in.Options.Addresses.Pool) == 0 {
		return nil // nobody asks
	}
	var list []*gatewayv1.Gateway
	for _, gw := range in.Gateways {
		gc := find(in.Classes, "", string(gw.Spec.GatewayClassName))
		if gc != nil && string(gc.Spec.ControllerName) == in.Options.ControllerName {
			list = append(list, gw)
		}
	}
	return list
}

// forgetCertificates drops the certificates of Secrets that are gone.
func (c *Compiler) forgetCertificates(in *Input) {
	for k := range c.certs {
		if find(in.Secrets, k.Namespace, k.Name) == nil {
			delete(c.certs, k)
		}
	}
}

// compileRoutes compiles the routes that changed, or whose dependencies did.
func (c *Compiler) compileRoutes(r reader, ch *changes) {
	old := c.routes
	c.routes = make([]*routeState, 0, len(r.in.HTTPRoutes))
	for _, hr := range r.in.HTTPRoutes {
		for len(old) > 0 && old[0].object != hr && compareObjects(old[0].object, hr) < 0 {
			old = old[1:]
		}
		var was *routeState
		if len(old) > 0 && (old[0].object == hr || compareObjects(old[0].object, hr) == 0) {
			was, old = old[0], old[1:]
			if !c.all && sameSpec(was.object, hr) && !ch.has(was.deps) {
				was.object = hr
				c.routes = append(c.routes, was)
				continue
			}
		}
		one := r
		one.deps = nil
		st := compileHTTPRoute(&one, hr, &r.in.Options, was)
		st.deps = one.deps
		if n := len(c.routes); n > 0 && (was == nil || was.report != st.report) {
			st.share(c.routes[n-1])
		}
		c.routes = append(c.routes, st)
	}
}

// attach gathers the routes of each listener; they come out sorted.
func (c *Compiler) attach() map[*listener][]*ir.Route {
	attached := make(map[*listener][]*ir.Route)
	for l, was := range c.listeners {
		if len(was.Routes) > 0 { // mostly as many as before
			attached[l] = make([]*ir.Route, 0, len(was.Routes)+1)
		}
	}
	for _, st := range c.routes {
		for _, a := range st.attachments {
			attached[a.listener] = append(attached[a.listener], a.route)
		}
	}
	maps.DeleteFunc(attached, func(_ *listener, l []*ir.Route) bool { return len(l) == 0 })
	return attached
}

// compileClusters compiles the clusters that served routes use, as far as their
// Services or endpoints changed.
func (c *Compiler) compileClusters(r reader, ch *changes) {
	reorder := false
	for _, st := range c.routes {
		if !slices.ContainsFunc(st.attachments, func(a attachment) bool { return a.listener.served }) {
			continue
		}
		if st.states == nil {
			st.states = make([]*clusterState, len(st.clusters))
		}
		for i, k := range st.clusters {
			cs := st.states[i]
			if cs == nil || cs.used+1 < c.runs { // it was dropped meanwhile
				if cs = c.clusters[k]; cs == nil {
					cs = &clusterState{}
					c.clusters[k] = cs
					reorder = true
				}
				st.states[i] = cs
			}
			cs.used = c.runs
		}
	}
	for k, cs := range c.clusters {
		switch {
		case cs.used != c.runs:
			delete(c.clusters, k)
			reorder = true
		case cs.cluster == nil || c.all || ch.has(cs.deps):
			one := r
			one.deps = nil
			now := compileCluster(&one, k)
			if cs.cluster != nil && reflect.DeepEqual(cs.cluster, now.cluster) {
				now.cluster = cs.cluster
			}
			cs.cluster, cs.problems, cs.deps = now.cluster, now.problems, now.deps
		}
	}
	if reorder {
		c.clusterOrder = slices.SortedFunc(maps.Values(c.clusters), func(a, b *clusterState) int {
			return strings.Compare(a.cluster.Name, b.cluster.Name)
		})
	}
}

// compilePolicies tells what became of the policies, all of them when one changed:
// they are few. Without a class of ours nothing is said of them.
func (c *Compiler) compilePolicies(r reader, ch *changes) {
	changed := c.policies == nil || c.all || ch.has(c.policies.deps)
	for d := range ch.all {
		changed = changed || d.kind == depPolicies || d.kind == depClass
	}
	if !changed {
		return
	}
	r.deps = nil
	if len(c.classes) == 0 {
		c.policies = &policyState{}
		return
	}
	c.policies = compilePolicies(&r, &r.in.Options, c.policies)
}

// report gathers what became of every object.
func (c *Compiler) report(attached map[*listener][]*ir.Route) *Report {
	rep := &Report{Assigned: c.assigned, teller: c.teller}
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		cl := c.classes[name]
		rep.Classes = append(rep.Classes, cl.report)
		rep.Problems = append(rep.Problems, cl.issues.problems(kindGatewayClass, "", name)...)
	}
	for _, g := range c.gateways {
		counts := make([]int, len(g.listeners))
		for i, l := range g.listeners {
			counts[i] = len(attached[l.listener])
			rep.Certificates = append(rep.Certificates, l.certs...)
		}
		if g.counts == nil || !slices.Equal(g.counts, counts) {
			now := g.report(counts)
			if g.last == nil || !reflect.DeepEqual(g.last, now) {
				g.last = now
			}
		}
		g.counts = counts
		rep.Gateways = append(rep.Gateways, g.last)
		rep.Problems = append(rep.Problems, g.problems...)
	}
	rep.Problems = append(rep.Problems, c.strays...)
	rep.Routes = slices.Grow(rep.Routes, len(c.routes))
	for _, st := range c.routes {
		if st.report != nil {
			rep.Routes = append(rep.Routes, st.report)
		}
		rep.Problems = append(rep.Problems, st.problems...)
	}
	rep.Policies = c.policies.reports
	rep.Problems = append(rep.Problems, c.policies.problems...)
	for _, cs := range c.clusterOrder {
		rep.Problems = append(rep.Problems, cs.problems...)
	}
	SortProblems(rep.Problems)
	rep.Problems = slices.Compact(rep.Problems)
	return rep
}
