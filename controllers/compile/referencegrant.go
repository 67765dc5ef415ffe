package compile

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Kinds and groups that references name.
const (
	kindGateway       = "Gateway"
	kindGatewayClass  = "GatewayClass"
	kindHTTPRoute     = "HTTPRoute"
	kindService       = "Service"
	kindSecret        = "Secret"
	kindSlice         = "EndpointSlice"
	kindBackendPolicy = "BackendPolicy"
	coreGroup         = ""
)

// reference is one object that names another one in another namespace.
type reference struct {
	fromKind, fromNamespace  string
	toGroup, toKind, toSpace string
	toName                   string
}

// granted tells whether one of the grants, which are all of the namespace that
// the reference points into, allows it. Every from goes with every to of the
// same grant.
func granted(grants []*gatewayv1.ReferenceGrant, ref reference) bool {
	for _, g := range grants {
		if grantsFrom(g, ref) && grantsTo(g, ref) {
			return true
		}
	}
	return false
}

func grantsFrom(g *gatewayv1.ReferenceGrant, ref reference) bool {
	for _, f := range g.Spec.From {
		if f.Group == gatewayv1.GroupName && string(f.Kind) == ref.fromKind && string(f.Namespace) == ref.fromNamespace {
			return true
		}
	}
	return false
}

func grantsTo(g *gatewayv1.ReferenceGrant, ref reference) bool {
	for _, t := range g.Spec.To {
		// An absent name means all objects of the kind.
		if string(t.Group) == ref.toGroup && string(t.Kind) == ref.toKind &&
			(t.Name == nil || *t.Name == "" || string(*t.Name) == ref.toName) {
			return true
		}
	}
	return false
}
