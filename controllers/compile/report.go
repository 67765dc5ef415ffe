package compile

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Report says what became of every object that is ours. Its conditions have no
// times, and its entries are the same pointers as in the last report where
// nothing changed. As [Compiler.Compile] returns it, it says what holds when the
// data plane opens every socket; [Report.Applied] says what holds now.
type Report struct {
	// Classes, Gateways, Routes and Policies are sorted by [Less]'s order.
	Classes  []*ClassReport
	Gateways []*GatewayReport
	Routes   []*RouteReport
	Policies []*PolicyReport
	// Problems are sorted; Services and other objects without a status have
	// theirs only here.
	Problems []Problem
	// Certificates are what the listeners present, sorted by listener.
	Certificates []Certificate
	// Assigned are the addresses that Gateways got from the pool.
	Assigned map[types.NamespacedName]netip.Addr

	// teller is the name of the class that tells of the process, and restart what
	// that must be restarted for.
	teller, restart string
}

// ClassReport is the status of a GatewayClass.
type ClassReport struct {
	Name       string
	UID        types.UID
	Generation int64
	Status     gatewayv1.GatewayClassStatus
}

// GatewayReport is the status of a Gateway.
type GatewayReport struct {
	types.NamespacedName
	UID        types.UID
	Generation int64
	Status     gatewayv1.GatewayStatus

	// sockets are the names of the sockets of each listener, in the order of
	// Status.Listeners; none for a listener that is not served.
	sockets [][]string
	// rivals are what else has the address and port of each listener.
	rivals [][]rival
	// intended is the report before a data plane answered, when it changed; behind
	// are the data planes of other nodes that serve an earlier generation.
	intended *GatewayReport
	behind   []string
	// addresses are what Status.Addresses says, by the address that is bound.
	addresses []boundAddress
}

// RouteReport is the status of a route: the parents that are ours.
type RouteReport struct {
	Kind string
	types.NamespacedName
	UID        types.UID
	Generation int64
	Parents    []gatewayv1.RouteParentStatus
	// Clusters are the names of those that its attached rules use, sorted.
	Clusters []string
}

// PolicyReport is the status of a policy: the targets that it names.
type PolicyReport struct {
	Kind string
	types.NamespacedName
	UID        types.UID
	Generation int64
	Ancestors  []gatewayv1.PolicyAncestorStatus
}

// Certificate is one certificate that a listener presents.
type Certificate struct {
	// Listener is "namespace/gateway/listener".
	Listener string
	// Secret is "namespace/name".
	Secret   string
	NotAfter time.Time
}
