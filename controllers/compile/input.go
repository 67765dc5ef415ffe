package compile

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Input is one consistent set of objects. Nothing in it may be changed once it
// was given to a compiler: a changed object is a new pointer. Every list should
// be sorted by [Less] and hold an object once; other lists are sorted in a copy.
type Input struct {
	Classes         []*gatewayv1.GatewayClass
	Gateways        []*gatewayv1.Gateway
	HTTPRoutes      []*gatewayv1.HTTPRoute
	Grants          []*gatewayv1.ReferenceGrant
	Namespaces      []*corev1.Namespace
	Services        []*corev1.Service
	EndpointSlices  []*discoveryv1.EndpointSlice
	Secrets         []*corev1.Secret
	ConfigMaps      []*corev1.ConfigMap
	BackendPolicies []*v1alpha1.BackendPolicy
	Parameters      []*v1alpha1.GatewayParameters

	// DataPlanes and Nodes say what other nodes serve. Compiling does not read
	// them; [Report.Across] does.
	DataPlanes []*v1alpha1.DataPlane
	Nodes      []*corev1.Node

	// Assigned are the addresses that Gateways already have from the pool
	// ([Report.Assigned] of the last report). They keep them while they can.
	Assigned map[types.NamespacedName]netip.Addr

	Options Options
}

// Options are what the compiler has to know besides the objects.
type Options struct {
	// ControllerName selects the GatewayClasses that are ours; default
	// [ControllerName].
	ControllerName string
	// Addresses says how Gateways come to their addresses.
	Addresses Addresses
	// Features are reported on the GatewayClass besides [Features]: what the
	// source can do, and the compiler can't know.
	Features []string
	// BundleVersions are the distinct bundle versions of the Gateway API CRDs in
	// the cluster, "" for one without the annotation. Nil means that no CRD is
	// involved.
	BundleVersions []string
	// MissingCRDs are the CRDs of kinds that Headgate serves and the cluster lacks,
	// such as "httproutes.gateway.networking.k8s.io". They count where
	// BundleVersions is set.
	MissingCRDs []string
	// TrustEndpoints accepts endpoints that are names, or loopback and
	// link-local addresses. It is for files, whose author owns the host. In a
	// cluster they would let anyone who may write an EndpointSlice reach into the
	// gateway's own host.
	TrustEndpoints bool
}

// ControllerName is the default name by which GatewayClasses choose Headgate.
const ControllerName = "headgate.dev/gateway-controller"

// object is a pointer to a Kubernetes object.
type object interface {
	comparable
	metav1.Object
}

// Less orders objects by the text "namespace/name", which is also the order that
// Gateway API asks for when routes tie.
func Less[T object](a, b T) bool { return compareObjects(a, b) < 0 }

// Sort puts a list into the order that [Input] asks for.
func Sort[T object](list []T) { slices.SortStableFunc(list, compareObjects[T]) }

func compareObjects[T object](a, b T) int {
	return compareNames(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

// compareNames compares aNS/aName with bNS/bName as texts, without building
// them.
func compareNames(aNS, aName, bNS, bName string) int {
	if aNS == bNS {
		return strings.Compare(aName, bName)
	}
	n := min(len(aNS), len(bNS))
	if c := strings.Compare(aNS[:n], bNS[:n]); c != 0 {
		return c
	}
	// One namespace is a prefix of the other: its slash meets a letter there.
	if len(aNS) < len(bNS) {
		if bNS[n] > '/' {
			return -1
		}
		return 1
	}
	if aNS[n] > '/' {
		return 1
	}
	return -1
}

// sorted returns the list in order and without doubles; the list itself when it
// is so already. last is one that was.
func sorted[T object](list, last []T) []T {
	if len(list) == len(last) && (len(list) == 0 || &list[0] == &last[0]) {
		return list // nothing was written to it since
	}
	for i := 1; i < len(list); i++ {
		if compareObjects(list[i-1], list[i]) >= 0 {
			list = slices.Clone(list)
			Sort(list)
			return slices.CompactFunc(list, func(a, b T) bool { return compareObjects(a, b) == 0 })
		}
	}
	return list
}

// normalised returns the input with every list in order. last is the result for
// the last input.
func (in Input) normalised(last *Input) Input {
	in.Classes = sorted(in.Classes, last.Classes)
	in.Gateways = sorted(in.Gateways, last.Gateways)
	in.HTTPRoutes = sorted(in.HTTPRoutes, last.HTTPRoutes)
	in.Grants = sorted(in.Grants, last.Grants)
	in.Namespaces = sorted(in.Namespaces, last.Namespaces)
	in.Services = sorted(in.Services, last.Services)
	in.EndpointSlices = sorted(in.EndpointSlices, last.EndpointSlices)
	in.Secrets = sorted(in.Secrets, last.Secrets)
	in.ConfigMaps = sorted(in.ConfigMaps, last.ConfigMaps)
	in.BackendPolicies = sorted(in.BackendPolicies, last.BackendPolicies)
	in.Parameters = sorted(in.Parameters, last.Parameters)
	if in.Options.ControllerName == "" {
		in.Options.ControllerName = ControllerName
	}
	return in
}

// find returns the object with the name, or the zero value.
func find[T object](list []T, namespace, name string) T {
	i, ok := slices.BinarySearchFunc(list, name, func(o T, _ string) int {
		return compareNames(o.GetNamespace(), o.GetName(), namespace, name)
	})
	if !ok {
		var none T
		return none
	}
	return list[i]
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
