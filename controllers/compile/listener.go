package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// listener is what the attachment of a route depends on. It stays the same
// pointer while none of this changes, so that a new certificate, say, does not
// touch routes.
type listener struct {
	gateway    types.NamespacedName
	name       gatewayv1.SectionName
	port       int32
	hostname   string
	httpRoutes bool // HTTPRoutes may attach
	from       gatewayv1.FromNamespaces
	selector   labels.Selector // set for NamespacesFromSelector
	served     bool            // it has a socket
}

// id is the listener's name in the snapshot.
func (l *listener) id() string {
	return l.gateway.Namespace + "/" + l.gateway.Name + "/" + string(l.name)
}

// admits tells whether routes of the namespace may attach.
func (l *listener) admits(r *reader, namespace string) bool {
	switch l.from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == l.gateway.Namespace
	case gatewayv1.NamespacesFromSelector:
		if l.selector == nil {
			return false
		}
		set, ok := r.labels(namespace)
		return ok && l.selector.Matches(set)
	}
	return false
}

// parent is what routes see of a Gateway.
type parent struct {
	listeners []*listener
}

// conflict says why a listener can't be told apart from others.
type conflict struct {
	reason  gatewayv1.ListenerConditionReason
	message string
}

// listenerState is a listener with all that its status and the snapshot need.
type listenerState struct {
	*listener
	field    string // of the Gateway, such as "spec.listeners[0]"
	protocol ir.Protocol
	kinds    []gatewayv1.RouteGroupKind

	accept   issues // why it is not accepted
	refs     issues // why its references are not resolved
	warnings issues
	clash    *conflict
	overlaps []string // listeners on the same port with overlapping hostnames
	tls      *ir.TLS
	certs    []Certificate
	wanted   int      // distinct certificates that the spec names
	sockets  []string // names of its sockets in the snapshot
	rivals   []rival  // Services that have its address and port
	yields   string   // whose parameters count, when it is not its Gateway's
}

// usable tells whether the listener, taken alone, can be served.
func (l *listenerState) usable() bool { return len(l.accept) == 0 && l.clash == nil }

func (l *listenerState) refuse(field string, reason gatewayv1.ListenerConditionReason, format string, args ...any) {
	if field != "" {
		field = "." + field
	}
	l.accept.add(Error, l.field+field, string(reason), fmt.Sprintf(format, args...))
}

// compileListener reads one listener of a Gateway.
func (c *Compiler) compileListener(r *reader, gw *gatewayv1.Gateway, i int) *listenerState {
	spec := &gw.Spec.Listeners[i]
	l := &listenerState{
		listener: &listener{gateway: keyOf(gw), name: spec.Name, port: spec.Port},
		field:    fmt.Sprintf("spec.listeners[%d]", i),
		kinds:    []gatewayv1.RouteGroupKind{},
	}
	if spec.Port < 1 || spec.Port > 65535 {
		l.refuse("port", gatewayv1.ListenerReasonPortUnavailable, "port %d is not between 1 and 65535", spec.Port)
	} else if fault := r.balancer().portFault(spec.Port); fault != "" {
		l.refuse("port", gatewayv1.ListenerReasonPortUnavailable, "%s", fault)
	}
	switch spec.Protocol {
	case gatewayv1.HTTPProtocolType:
		l.protocol = ir.ProtocolHTTP
		if spec.TLS != nil {
			l.refuse("tls", gatewayv1.ListenerReasonUnsupportedValue, "protocol HTTP has no tls; remove it, or use protocol HTTPS")
		}
	case gatewayv1.HTTPSProtocolType:
		l.protocol = ir.ProtocolHTTPS
	default:
		l.refuse("protocol", gatewayv1.ListenerReasonUnsupportedProtocol, "protocol %q is not supported; use HTTP or HTTPS", spec.Protocol)
	}
	if spec.Hostname != nil && *spec.Hostname != "" {
		l.hostname = string(*spec.Hostname)
		if fault := hostnameFault(l.hostname); fault != "" {
			l.refuse("hostname", gatewayv1.ListenerReasonUnsupportedValue, "hostname %q %s", l.hostname, fault)
		}
	}
	l.allowRoutes(spec)
	if l.protocol == ir.ProtocolHTTPS {
		c.terminate(r, gw, l, spec)
	}
	return l
}

// allowRoutes reads which routes may attach.
func (l *listenerState) allowRoutes(spec *gatewayv1.Listener) {
	var kinds []gatewayv1.RouteGroupKind
	l.from = gatewayv1.NamespacesFromSame
	if a := spec.AllowedRoutes; a != nil {
		kinds = a.Kinds
		if a.Namespaces != nil && a.Namespaces.From != nil {
			l.from = *a.Namespaces.From
		}
		switch l.from {
		case gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame:
		case gatewayv1.NamespacesFromSelector:
			if a.Namespaces.Selector == nil {
				l.refuse("allowedRoutes.namespaces.selector", gatewayv1.ListenerReasonUnsupportedValue, "must be set when from is Selector")
				break
			}
			s, err := metav1.LabelSelectorAsSelector(a.Namespaces.Selector)
			if err != nil {
				l.refuse("allowedRoutes.namespaces.selector", gatewayv1.ListenerReasonUnsupportedValue, "is not a selector: %v", err)
				break
			}
			l.selector = s
		default:
			l.refuse("allowedRoutes.namespaces.from", gatewayv1.ListenerReasonUnsupportedValue, "%q is unknown; use All, Same or Selector", l.from)
		}
	}
	if l.protocol == 0 {
		return // no kind goes with a protocol that is not supported
	}
	group := gatewayv1.Group(gatewayv1.GroupName)
	httpRoute := gatewayv1.RouteGroupKind{Group: &group, Kind: kindHTTPRoute}
	if len(kinds) == 0 {
		l.kinds = append(l.kinds, httpRoute)
		l.httpRoutes = true
		return
	}
	for i, k := range kinds {
		if (k.Group == nil || *k.Group == group) && k.Kind == kindHTTPRoute {
			if !l.httpRoutes {
				l.kinds = append(l.kinds, httpRoute)
			}
			l.httpRoutes = true
			continue
		}
		l.refs.add(Error, fmt.Sprintf("%s.allowedRoutes.kinds[%d]", l.field, i), string(gatewayv1.ListenerReasonInvalidRouteKinds),
			fmt.Sprintf("kind %s is not supported with protocol %s; use HTTPRoute", kindText(k.Group, k.Kind), spec.Protocol))
	}
}

// terminate reads an HTTPS listener's TLS and its certificates.
func (c *Compiler) terminate(r *reader, gw *gatewayv1.Gateway, l *listenerState, spec *gatewayv1.Listener) {
	l.tls = &ir.TLS{}
	if spec.TLS == nil {
		l.refuse("tls", gatewayv1.ListenerReasonUnsupportedValue, "protocol HTTPS needs tls.certificateRefs")
		return
	}
	if m := spec.TLS.Mode; m != nil && *m != "" && *m != gatewayv1.TLSModeTerminate {
		l.refuse("tls.mode", gatewayv1.ListenerReasonUnsupportedValue, "mode %q is not supported with protocol HTTPS; use Terminate", *m)
	}
	for _, k := range slices.Sorted(maps.Keys(spec.TLS.Options)) {
		l.refuse("tls.options", gatewayv1.ListenerReasonUnsupportedValue, "option %q is unknown; remove it", k)
	}
	c.validateClients(gw, l)
	if len(spec.TLS.CertificateRefs) == 0 {
		l.refuse("tls.certificateRefs", gatewayv1.ListenerReasonUnsupportedValue, "name at least one Secret")
	}
	l.wanted = len(spec.TLS.CertificateRefs)
	for i := range spec.TLS.CertificateRefs {
		c.certificateRef(r, l, fmt.Sprintf("%s.tls.certificateRefs[%d]", l.field, i), &spec.TLS.CertificateRefs[i])
	}
}

// validateClients refuses a listener that should ask clients for certificates:
// to serve it without that check would let everybody in.
func (c *Compiler) validateClients(gw *gatewayv1.Gateway, l *listenerState) {
	if gw.Spec.TLS == nil || gw.Spec.TLS.Frontend == nil {
		return
	}
	f := gw.Spec.TLS.Frontend
	validation := f.Default.Validation
	for i := range f.PerPort {
		if f.PerPort[i].Port == l.port {
			validation = f.PerPort[i].TLS.Validation
		}
	}
	if validation != nil {
		l.accept.add(Error, "spec.tls.frontend", string(gatewayv1.ListenerReasonUnsupportedValue),
			"client certificates are not checked yet; remove the validation for port "+fmt.Sprint(l.port))
	}
}

// certificateRef adds the certificate of a Secret, or says why it can't.
func (c *Compiler) certificateRef(r *reader, l *listenerState, field string, ref *gatewayv1.SecretObjectReference) {
	bad := func(reason gatewayv1.ListenerConditionReason, format string, args ...any) {
		l.refs.add(Error, field, string(reason), fmt.Sprintf(format, args...))
	}
	group, kind, namespace := coreGroup, kindSecret, l.gateway.Namespace
	if ref.Group != nil {
		group = string(*ref.Group)
	}
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil && *ref.Namespace != "" {
		namespace = string(*ref.Namespace)
	}
	name := string(ref.Name)
	// The grant comes first: without it nothing is said of the other namespace.
	if !r.granted(reference{kindGateway, l.gateway.Namespace, group, kind, namespace, name}) {
		bad(gatewayv1.ListenerReasonRefNotPermitted,
			"%s %s/%s: no ReferenceGrant in namespace %s lets Gateways of namespace %s use it", kind, namespace, name, namespace, l.gateway.Namespace)
		return
	}
	if group != coreGroup || kind != kindSecret {
		bad(gatewayv1.ListenerReasonInvalidCertificateRef, "kind %s is not supported; use a Secret", kindText((*gatewayv1.Group)(&group), gatewayv1.Kind(kind)))
		return
	}
	s := r.secret(namespace, name)
	if s == nil {
		bad(gatewayv1.ListenerReasonInvalidCertificateRef, "Secret %s/%s does not exist", namespace, name)
		return
	}
	cert := c.certificate(s)
	if cert.fault != "" {
		bad(gatewayv1.ListenerReasonInvalidCertificateRef, "Secret %s/%s %s", namespace, name, cert.fault)
		return
	}
	if slices.ContainsFunc(l.tls.Certificates, func(have *ir.Certificate) bool { return have == cert.cert }) {
		l.wanted--
		l.warnings.add(Warning, field, "", fmt.Sprintf("Secret %s/%s is named twice", namespace, name))
		return
	}
	l.tls.Certificates = append(l.tls.Certificates, cert.cert)
	l.certs = append(l.certs, Certificate{Listener: l.id(), Secret: cert.cert.Name, NotAfter: cert.leaf.NotAfter})
	if err := cert.covers(l.hostname); err != nil {
		l.warnings.add(Warning, field, "",
			fmt.Sprintf("the certificate in Secret %s/%s does not cover hostname %q: %v", namespace, name, l.hostname, err))
	}
}

// status returns the listener's status as it is when all its sockets open.
// attached is the number of accepted routes on it.
func (l *listenerState) status(gatewayAccepted bool, gen int64, attached int) gatewayv1.ListenerStatus {
	s := gatewayv1.ListenerStatus{Name: l.name, SupportedKinds: l.kinds, AttachedRoutes: int32(attached)}
	add := func(c metav1.Condition) { s.Conditions = append(s.Conditions, c) }
	switch {
	case len(l.accept) > 0:
		add(condition(gatewayv1.ListenerConditionAccepted, false, gatewayv1.ListenerConditionReason(l.accept[0].reason), gen, summary(l.accept)))
	case l.clash != nil:
		add(condition(gatewayv1.ListenerConditionAccepted, false, l.clash.reason, gen, l.clash.message))
	default:
		add(condition(gatewayv1.ListenerConditionAccepted, true, gatewayv1.ListenerReasonAccepted, gen, "The listener is valid"))
	}
	add(l.programmed(gatewayAccepted, gen))
	if len(l.refs) > 0 {
		add(condition(gatewayv1.ListenerConditionResolvedRefs, false, gatewayv1.ListenerConditionReason(l.refs[0].reason), gen, summary(l.refs)))
	} else {
		add(condition(gatewayv1.ListenerConditionResolvedRefs, true, gatewayv1.ListenerReasonResolvedRefs, gen, "All references are resolved"))
	}
	if l.clash != nil {
		add(condition(gatewayv1.ListenerConditionConflicted, true, l.clash.reason, gen, l.clash.message))
	}
	if len(l.overlaps) > 0 {
		add(condition(gatewayv1.ListenerConditionOverlappingTLSConfig, true, gatewayv1.ListenerReasonOverlappingHostnames, gen,
			"Hostnames overlap with those of "+listed(l.overlaps)+"; a client that reuses a connection for the wrong one gets 421"))
	}
	return s
}

func (l *listenerState) programmed(gatewayAccepted bool, gen int64) metav1.Condition {
	no := func(reason gatewayv1.ListenerConditionReason, message string) metav1.Condition {
		return condition(gatewayv1.ListenerConditionProgrammed, false, reason, gen, message)
	}
	switch {
	case len(l.accept) > 0:
		return no(gatewayv1.ListenerReasonInvalid, "The listener is not accepted")
	case l.clash != nil:
		return no(l.clash.reason, "The listener is in conflict with another one")
	case !gatewayAccepted:
		return no(gatewayv1.ListenerReasonInvalid, "The Gateway is not accepted")
	case len(l.sockets) == 0:
		return no(gatewayv1.ListenerReasonPending, "The Gateway has no address")
	case l.tls != nil && len(l.tls.Certificates) == 0:
		return no(gatewayv1.ListenerReasonInvalid, "There is no usable certificate: handshakes are refused")
	}
	msg := "The listener is served"
	if have := len(l.certs); l.tls != nil && have < l.wanted {
		msg = fmt.Sprintf("The listener is served, with %d of %d certificates", have, l.wanted)
	}
	if len(l.rivals) > 0 {
		msg += ". But its connections may be taken by " + adviseAll(l.rivals)
	}
	if l.yields != "" {
		msg += ". But " + l.yields
	}
	return condition(gatewayv1.ListenerConditionProgrammed, true, gatewayv1.ListenerReasonProgrammed, gen, msg)
}

// kindText names a kind, with its group unless that is the usual one.
func kindText(group *gatewayv1.Group, kind gatewayv1.Kind) string {
	if group == nil || *group == coreGroup || *group == gatewayv1.GroupName {
		return string(kind)
	}
	return string(kind) + "." + string(*group)
}

// listed joins names and cuts the list short.
func listed(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}
