package compile

import (
	"fmt"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// A filter's order is its place in the object times filterStep, so that filters
// of other sources can be put between. Those of a backend come behind those of
// the rule, since they run in one chain.
const (
	filterStep         = 100
	backendFilterOrder = 10_000
)

// filters reads the filters of a rule, in the order of the object. prefix tells
// that the rule has a single match, on a path prefix.
func (b *ruleBuilder) filters(specs []gatewayv1.HTTPRouteFilter, prefix bool) []*ir.Filter {
	var list []*ir.Filter
	seen := make(map[gatewayv1.HTTPRouteFilterType]bool)
	for i := range specs {
		spec, field := &specs[i], fmt.Sprintf("%s.filters[%d]", b.field, i)
		if seen[spec.Type] {
			b.fault(field, gatewayv1.RouteReasonIncompatibleFilters, "%s is used twice in one rule", spec.Type)
			continue
		}
		seen[spec.Type] = true
		f := &ir.Filter{Order: (i + 1) * filterStep}
		switch {
		case spec.Type == gatewayv1.HTTPRouteFilterRequestRedirect && spec.RequestRedirect != nil:
			f.Redirect = b.redirect(spec.RequestRedirect, field+".requestRedirect", prefix)
		case spec.Type == gatewayv1.HTTPRouteFilterURLRewrite && spec.URLRewrite != nil:
			f.Rewrite = b.rewrite(spec.URLRewrite, field+".urlRewrite", prefix)
		default:
			b.headerFilter(f, spec, field)
		}
		list = append(list, f)
	}
	if seen[gatewayv1.HTTPRouteFilterRequestRedirect] && seen[gatewayv1.HTTPRouteFilterURLRewrite] {
		b.fault(b.field+".filters", gatewayv1.RouteReasonIncompatibleFilters, "RequestRedirect and URLRewrite exclude each other; keep one")
	}
	return list
}

// backendFilters reads the filters of one backend: header changes only.
func (b *ruleBuilder) backendFilters(specs []gatewayv1.HTTPRouteFilter, field string) []*ir.Filter {
	var list []*ir.Filter
	seen := make(map[gatewayv1.HTTPRouteFilterType]bool)
	for i := range specs {
		spec, at := &specs[i], fmt.Sprintf("%s.filters[%d]", field, i)
		if seen[spec.Type] {
			b.fault(at, gatewayv1.RouteReasonIncompatibleFilters, "%s is used twice for one backend", spec.Type)
			continue
		}
		seen[spec.Type] = true
		f := &ir.Filter{Order: backendFilterOrder + (i+1)*filterStep}
		switch spec.Type {
		case gatewayv1.HTTPRouteFilterRequestRedirect, gatewayv1.HTTPRouteFilterURLRewrite:
			b.unsupported(at+".type", "filter %s is not supported for one backend; put it into the rule", spec.Type)
		default:
			b.headerFilter(f, spec, at)
		}
		list = append(list, f)
	}
	return list
}

// headerFilter reads a filter that changes headers, and refuses all others.
func (b *ruleBuilder) headerFilter(f *ir.Filter, spec *gatewayv1.HTTPRouteFilter, field string) {
	missing := func(name string) {
		b.unsupported(field, "type %s needs the field %s", spec.Type, name)
	}
	switch spec.Type {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		if spec.RequestHeaderModifier == nil {
			missing("requestHeaderModifier")
			return
		}
		f.RequestHeaders = b.headerChange(spec.RequestHeaderModifier, field+".requestHeaderModifier", true)
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		if spec.ResponseHeaderModifier == nil {
			missing("responseHeaderModifier")
			return
		}
		f.ResponseHeaders = b.headerChange(spec.ResponseHeaderModifier, field+".responseHeaderModifier", false)
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		missing("requestRedirect")
	case gatewayv1.HTTPRouteFilterURLRewrite:
		missing("urlRewrite")
	case gatewayv1.HTTPRouteFilterExtensionRef:
		if spec.ExtensionRef != nil {
			b.unsupported(field, "%s.%s is no filter that Headgate knows", spec.ExtensionRef.Kind, spec.ExtensionRef.Group)
			return
		}
		missing("extensionRef")
	default:
		b.unsupported(field+".type", "filter %q is not supported", spec.Type)
	}
}

// headerChange reads a header modifier.
func (b *ruleBuilder) headerChange(spec *gatewayv1.HTTPHeaderFilter, field string, request bool) *ir.HeaderChange {
	c := &ir.HeaderChange{}
	action := make(map[string]string) // by name in lower case
	// first tells whether the name is new. Gateway API: of equivalent names in one
	// list only the first counts; one name in two lists is invalid.
	first := func(name, in, at string) bool {
		lower := strings.ToLower(name)
		switch have := action[lower]; have {
		case "":
			action[lower] = in
			b.headerName(name, at, request)
			return true
		case in:
			b.set.warn(at, "header %s is named twice; only the first counts", name)
		default:
			b.unsupported(at, "header %s is also under %s; a filter may do one thing to a header", name, have)
		}
		return false
	}
	for _, l := range []struct {
		name string
		from []gatewayv1.HTTPHeader
		to   *[]ir.Header
	}{{"set", spec.Set, &c.Set}, {"add", spec.Add, &c.Add}} {
		for i, h := range l.from {
			at := fmt.Sprintf("%s.%s[%d]", field, l.name, i)
			if first(string(h.Name), l.name, at) {
				if fault := headerValueFault(h.Value); fault != "" {
					b.unsupported(at+".value", "the value of %s %s", h.Name, fault)
				}
				*l.to = append(*l.to, ir.Header{Name: string(h.Name), Value: h.Value})
			}
		}
	}
	for i, name := range spec.Remove {
		if first(name, "remove", fmt.Sprintf("%s.remove[%d]", field, i)) {
			c.Remove = append(c.Remove, name)
		}
	}
	return c
}

// headerName refuses names that a modifier must not touch: to change them would
// change where the message goes or where it ends.
func (b *ruleBuilder) headerName(name, field string, request bool) {
	switch lower := strings.ToLower(name); {
	case lower == "host" && request, strings.HasPrefix(lower, ":"):
		b.unsupported(field, "%s can't be changed here; use a URLRewrite filter with hostname", name)
	case !isToken(name):
		b.unsupported(field, "header name %q is malformed", name)
	case lower == "host":
		b.unsupported(field, "Host is no response header")
	case isConnectionHeader(lower):
		b.unsupported(field, "header %s frames the message or belongs to one connection; Headgate alone sets it", name)
	}
}

// isConnectionHeader tells whether the name, in lower case, is of a field that
// frames a message or belongs to one connection (RFC 9110, 7.6.1; RFC 9112, 6).
func isConnectionHeader(name string) bool {
	switch name {
	case "connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-connection",
		"te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// headerValueFault says why a value must not be sent, or "" (RFC 9110, 5.5).
func headerValueFault(v string) string {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "has the control character " + quoteByte(c)
		}
	}
	switch {
	case v == "":
		return "is empty"
	case strings.Trim(v, " \t") != v:
		return "starts or ends with white space, which would be lost"
	}
	return ""
}

// isToken tells whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func (b *ruleBuilder) redirect(spec *gatewayv1.HTTPRequestRedirectFilter, field string, prefix bool) *ir.Redirect {
	d := &ir.Redirect{Status: 302, Path: b.pathChange(spec.Path, field+".path", prefix)}
	if spec.Scheme != nil {
		d.Scheme = *spec.Scheme
		if d.Scheme != "http" && d.Scheme != "https" {
			b.unsupported(field+".scheme", "scheme %q is unknown; use http or https", d.Scheme)
		}
	}
	d.Hostname = b.newHostname(spec.Hostname, field)
	if spec.Port != nil {
		if *spec.Port < 1 || *spec.Port > 65535 {
			b.unsupported(field+".port", "port %d is not between 1 and 65535", *spec.Port)
		}
		d.Port = uint16(*spec.Port)
	}
	if spec.StatusCode != nil {
		d.Status = *spec.StatusCode
		switch d.Status {
		case 301, 302, 303, 307, 308:
		default:
			b.unsupported(field+".statusCode", "status %d is unknown; use 301, 302, 303, 307 or 308", d.Status)
		}
	}
	return d
}

func (b *ruleBuilder) rewrite(spec *gatewayv1.HTTPURLRewriteFilter, field string, prefix bool) *ir.Rewrite {
	return &ir.Rewrite{
		Hostname: b.newHostname(spec.Hostname, field),
		Path:     b.pathChange(spec.Path, field+".path", prefix),
	}
}

func (b *ruleBuilder) newHostname(h *gatewayv1.PreciseHostname, field string) string {
	if h == nil || *h == "" {
		return ""
	}
	if fault := preciseFault(string(*h)); fault != "" {
		b.unsupported(field+".hostname", "hostname %q %s", *h, fault)
	}
	return string(*h)
}

func (b *ruleBuilder) pathChange(spec *gatewayv1.HTTPPathModifier, field string, prefix bool) *ir.PathChange {
	if spec == nil {
		return nil
	}
	c := &ir.PathChange{}
	var value *string
	switch spec.Type {
	case gatewayv1.FullPathHTTPPathModifier:
		value, field = spec.ReplaceFullPath, field+".replaceFullPath"
	case gatewayv1.PrefixMatchHTTPPathModifier:
		value, field = spec.ReplacePrefixMatch, field+".replacePrefixMatch"
		c.Prefix = true
		if !prefix {
			b.unsupported(field, "needs a rule with exactly one match, of type PathPrefix")
		}
	default:
		b.unsupported(field+".type", "type %q is unknown; use ReplaceFullPath or ReplacePrefixMatch", spec.Type)
		return nil
	}
	if value == nil {
		b.unsupported(field, "must be set for type %s", spec.Type)
		return nil
	}
	if *value == "" && c.Prefix {
		return c
	}
	normal, fault := normalPath(*value)
	if fault != "" {
		b.unsupported(field, "path %q %s", *value, fault)
	}
	c.Value = normal
	return c
}
