package compile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// Applied returns the report as it holds after the data plane answered: what is
// not served is not Programmed. The errors of sockets may be an [Occupied] or a
// [Diverted], which say more than the system's. The receiver stays as it is.
func (r *Report) Applied(res ir.ApplyResult) *Report {
	if res.OK() && len(res.Restart) == 0 {
		return r
	}
	out := *r
	out.restart = restartMessage(res.Restart)
	out.Classes = out.notApplied(res)
	out.Gateways = slices.Clone(r.Gateways)
	out.Problems = slices.Clone(r.Problems)
	for i, g := range r.Gateways {
		a := outcome{res: res, gateway: g, status: g.Status.DeepCopy()}
		if a.apply() {
			now := *g
			now.Status, now.intended = *a.status, g
			out.Gateways[i] = &now
			out.Problems = append(out.Problems, a.found.problems(kindGateway, g.Namespace, g.Name)...)
		}
	}
	if out.restart != "" && out.teller != "" {
		var is issues
		is.add(Warning, "spec.parametersRef", ReasonRestartRequired, out.restart+restartAdvice)
		out.Problems = append(out.Problems, is.problems(kindGatewayClass, "", out.teller)...)
	}
	SortProblems(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	return &out
}

// outcome works an answer of the data plane into one Gateway's status.
type outcome struct {
	res     ir.ApplyResult
	gateway *GatewayReport
	status  *gatewayv1.GatewayStatus
	found   issues
}

// apply tells whether anything changed.
func (a *outcome) apply() bool {
	served := false
	for _, names := range a.gateway.sockets {
		served = served || len(names) > 0
	}
	if !served {
		return false
	}
	if a.res.Err != nil {
		a.refused()
		return true
	}
	lost := a.lostAddresses()
	closed, open := 0, 0
	for i := range a.status.Listeners {
		ok, failed := a.listener(i)
		open += ok
		closed += failed
	}
	if closed == 0 && len(lost) == 0 {
		return false
	}
	a.summarise(open, closed, lost)
	return true
}

// refused notes that the data plane took nothing of the snapshot.
func (a *outcome) refused() {
	msg := notTaken(a.res.Err)
	a.found.add(Error, "", string(gatewayv1.GatewayReasonPending), msg)
	a.set(&a.status.Conditions, string(gatewayv1.GatewayConditionProgrammed), false, string(gatewayv1.GatewayReasonPending), msg)
	for i := range a.status.Listeners {
		if len(a.gateway.sockets[i]) > 0 {
			a.set(&a.status.Listeners[i].Conditions, string(gatewayv1.ListenerConditionProgrammed), false, string(gatewayv1.ListenerReasonPending), msg)
		}
	}
}

func notTaken(err error) string {
	return fmt.Sprintf("The data plane did not take the configuration and goes on with the one before: %v", err)
}

// lostAddresses returns the addresses that this host does not have.
func (a *outcome) lostAddresses() []netip.Addr {
	var lost []netip.Addr
	for _, b := range a.gateway.addresses {
		if !b.spec && len(a.gateway.addresses) > 1 {
			continue // a family that this host does not have, asked for by nobody
		}
		for _, names := range a.gateway.sockets {
			for _, name := range names {
				ap, err := netip.ParseAddrPort(name)
				if err == nil && ap.Addr() == b.addr && noSuchAddress(a.res.Sockets[name]) && !slices.Contains(lost, b.addr) {
					lost = append(lost, b.addr)
				}
			}
		}
	}
	return lost
}

// noSuchAddress tells whether a socket failed for its address and not for its
// port.
func noSuchAddress(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listener works the answer into one listener. open is 1 when it is served
// somewhere; closed is 1 when a port of it failed.
func (a *outcome) listener(i int) (open, closed int) {
	names := a.gateway.sockets[i]
	if len(names) == 0 {
		return 0, 0
	}
	var faults issues
	addressOnly := true
	ok := 0
	for _, name := range names {
		err := a.res.Sockets[name]
		switch {
		case err == nil:
			ok++
		default:
			addressOnly = addressOnly && noSuchAddress(err)
			faults.add(Error, "", "", sentence(name, err, a.gateway.rivals[i]))
		}
	}
	if len(faults) == 0 {
		return 1, 0
	}
	if ok > 0 {
		open = 1
	}
	cs := &a.status.Listeners[i].Conditions
	msg := summary(faults)
	switch {
	case addressOnly && ok > 0:
		return open, 0 // the Gateway's status says it
	case addressOnly:
		a.set(cs, string(gatewayv1.ListenerConditionProgrammed), false, string(gatewayv1.ListenerReasonPending), msg)
		return 0, 0
	case ok == 0:
		a.set(cs, string(gatewayv1.ListenerConditionAccepted), false, string(gatewayv1.ListenerReasonPortUnavailable), msg)
	}
	a.set(cs, string(gatewayv1.ListenerConditionProgrammed), false, string(gatewayv1.ListenerReasonPortUnavailable), msg)
	a.found.add(Error, fmt.Sprintf("spec.listeners[%d].port", i), string(gatewayv1.ListenerReasonPortUnavailable), msg)
	return open, 1
}

// summarise works the answer into the Gateway's own conditions.
func (a *outcome) summarise(open, closed int, lost []netip.Addr) {
	cs := &a.status.Conditions
	if closed > 0 && open == 0 {
		a.set(cs, string(gatewayv1.GatewayConditionAccepted), false, string(gatewayv1.GatewayReasonListenersNotValid),
			"None of the listeners can be reached; see their status")
		a.set(cs, string(gatewayv1.GatewayConditionProgrammed), false, string(gatewayv1.GatewayReasonNoResources),
			"None of the listeners can be reached; see their status")
	} else if closed > 0 {
		a.set(cs, string(gatewayv1.GatewayConditionAccepted), true, string(gatewayv1.GatewayReasonListenersNotValid),
			"Not all listeners can be reached; see their status")
	}
	if len(lost) == 0 {
		return
	}
	var names []string
	for _, l := range lost {
		names = append(names, l.String())
		a.status.Addresses = slices.DeleteFunc(a.status.Addresses, func(s gatewayv1.GatewayStatusAddress) bool { return s.Value == l.String() })
	}
	msg := fmt.Sprintf("This host does not have %s; add it to an interface, or name another address in spec.addresses", listed(names))
	a.set(cs, string(gatewayv1.GatewayConditionProgrammed), false, string(gatewayv1.GatewayReasonAddressNotUsable), msg)
	a.found.add(Error, "spec.addresses", string(gatewayv1.GatewayReasonAddressNotUsable), msg)
}

// set changes a condition that is there.
func (a *outcome) set(cs *[]metav1.Condition, kind string, ok bool, reason, message string) {
	for i, c := range *cs {
		if c.Type == kind {
			(*cs)[i] = condition(kind, ok, reason, c.ObservedGeneration, message)
		}
	}
}
