package file

import (
	"fmt"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func checkHTTPRoute(c *checker, o *gatewayv1.HTTPRoute) {
	c.parentRefs(o.Spec.ParentRefs)
	c.between("spec.hostnames", len(o.Spec.Hostnames), 0, 16)
	for i, h := range o.Spec.Hostnames {
		c.hostname(fmt.Sprintf("spec.hostnames[%d]", i), string(h))
	}
	c.between("spec.rules", len(o.Spec.Rules), 1, 16)
	total := 0
	for i := range o.Spec.Rules {
		total += len(o.Spec.Rules[i].Matches)
		c.rule(fmt.Sprintf("spec.rules[%d]", i), &o.Spec.Rules[i])
	}
	c.must(total <= 128, "spec.rules", "have %d matches together, and must have at most 128", total)
}

// parentRefs checks that each names its own parent or section of it.
func (c *checker) parentRefs(refs []gatewayv1.ParentReference) {
	c.between("spec.parentRefs", len(refs), 0, 32)
	type section struct {
		named bool
		seen  map[string]bool
	}
	parents := make(map[string]*section)
	for i, r := range refs {
		field := fmt.Sprintf("spec.parentRefs[%d]", i)
		c.reference(field, *r.Group, *r.Kind, r.Name, r.Namespace)
		if r.Port != nil {
			c.port(field+".port", *r.Port)
		}
		name, namespace := "", ""
		if r.SectionName != nil {
			name = string(*r.SectionName)
			c.subdomain(field+".sectionName", name)
		}
		if r.Namespace != nil {
			namespace = string(*r.Namespace)
		}
		port := ""
		if r.Port != nil {
			port = fmt.Sprint(*r.Port)
		}
		key := fmt.Sprint(*r.Group, "/", *r.Kind, "/", namespace, "/", r.Name)
		s := parents[key]
		if s == nil {
			parents[key] = &section{name+port != "", map[string]bool{name + ":" + port: true}}
			continue
		}
		switch {
		case s.named != (name+port != ""):
			c.fail(field, "sectionName or port must be set on all references to %s, or on none", r.Name)
		case s.seen[name+":"+port]:
			c.fail(field, "the same section of %s is referenced twice", r.Name)
		}
		s.seen[name+":"+port] = true
	}
}

func (c *checker) rule(field string, r *gatewayv1.HTTPRouteRule) {
	if r.Name != nil {
		c.subdomain(field+".name", string(*r.Name))
	}
	c.between(field+".matches", len(r.Matches), 0, 64)
	for i := range r.Matches {
		c.match(fmt.Sprintf("%s.matches[%d]", field, i), &r.Matches[i])
	}
	prefix := len(r.Matches) == 1 && *r.Matches[0].Path.Type == gatewayv1.PathMatchPathPrefix
	redirects := c.filters(field+".filters", r.Filters, prefix)
	c.between(field+".backendRefs", len(r.BackendRefs), 0, 16)
	c.must(!redirects || len(r.BackendRefs) == 0, field, "RequestRedirect must not be used together with backendRefs")
	for i := range r.BackendRefs {
		b, at := &r.BackendRefs[i], fmt.Sprintf("%s.backendRefs[%d]", field, i)
		c.backend(at, &b.BackendObjectReference)
		c.must(*b.Weight >= 0 && *b.Weight <= 1_000_000, at+".weight", "weight %d is not between 0 and 1000000", *b.Weight)
		c.filters(at+".filters", b.Filters, prefix)
	}
	if t := r.Timeouts; t != nil {
		request, ok1 := c.duration(field+".timeouts.request", t.Request)
		backend, ok2 := c.duration(field+".timeouts.backendRequest", t.BackendRequest)
		c.must(!ok1 || !ok2 || request == 0 || backend <= request, field+".timeouts.backendRequest", "must not be longer than request")
	}
}

func (c *checker) duration(field string, d *gatewayv1.Duration) (time.Duration, bool) {
	if d == nil {
		return 0, false
	}
	v, err := time.ParseDuration(string(*d))
	if err != nil || !duration.MatchString(string(*d)) {
		c.fail(field, "%q is not a duration, such as 500ms, 10s or 1h30m", *d)
		return 0, false
	}
	return v, true
}

func (c *checker) backend(field string, b *gatewayv1.BackendObjectReference) {
	c.reference(field, *b.Group, *b.Kind, b.Name, b.Namespace)
	if b.Port != nil {
		c.port(field+".port", *b.Port)
		return
	}
	c.must(*b.Group != "" || *b.Kind != "Service", field+".port", "must be set for a Service")
}

func (c *checker) match(field string, m *gatewayv1.HTTPRouteMatch) {
	c.path(field+".path", m.Path)
	if m.Method != nil {
		switch *m.Method {
		case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH":
		default:
			c.fail(field+".method", "%q is not a method; methods are in upper case", *m.Method)
		}
	}
	c.between(field+".headers", len(m.Headers), 0, 16)
	seen := make(map[gatewayv1.HTTPHeaderName]bool)
	for i, h := range m.Headers {
		c.value(fmt.Sprintf("%s.headers[%d]", field, i), h.Name, string(*h.Type), h.Value, 4096, seen)
	}
	c.between(field+".queryParams", len(m.QueryParams), 0, 16)
	seen = make(map[gatewayv1.HTTPHeaderName]bool)
	for i, q := range m.QueryParams {
		c.value(fmt.Sprintf("%s.queryParams[%d]", field, i), q.Name, string(*q.Type), q.Value, 1024, seen)
	}
}

func (c *checker) value(field string, name gatewayv1.HTTPHeaderName, kind, value string, most int, seen map[gatewayv1.HTTPHeaderName]bool) {
	c.header(field+".name", string(name))
	c.must(!seen[name], field+".name", "%q is there twice", name)
	seen[name] = true
	c.must(kind == "Exact" || kind == "RegularExpression", field+".type", "%q is unknown; use Exact or RegularExpression", kind)
	c.must(value != "" && len(value) <= most, field+".value", "must have 1 to %d characters", most)
}

func (c *checker) header(field, name string) {
	c.must(len(name) <= 256 && headerName.MatchString(name), field, "%q is not the name of a header or a parameter", name)
}

func (c *checker) path(field string, p *gatewayv1.HTTPPathMatch) {
	v := *p.Value
	c.must(len(v) <= 1024, field+".value", "must have at most 1024 characters")
	switch *p.Type {
	case gatewayv1.PathMatchRegularExpression:
	case gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix:
		lower := strings.ToLower(v)
		for _, bad := range []string{"//", "/./", "/../", "%2f", "#"} {
			c.must(!strings.Contains(lower, bad), field+".value", "path %q must not contain %s", v, bad)
		}
		c.must(!strings.HasSuffix(v, "/.") && !strings.HasSuffix(v, "/.."), field+".value", "path %q must not end with a dot segment", v)
		c.must(strings.HasPrefix(v, "/") && pathValue.MatchString(v), field+".value",
			"path %q must start with a slash, and have only characters that paths have", v)
	default:
		c.fail(field+".type", "%q is unknown; use Exact, PathPrefix or RegularExpression", *p.Type)
	}
}

// filters checks a chain, and tells whether it has a redirect.
func (c *checker) filters(field string, fs []gatewayv1.HTTPRouteFilter, prefix bool) bool {
	c.between(field, len(fs), 0, 16)
	seen := make(map[gatewayv1.HTTPRouteFilterType]bool)
	for i := range fs {
		f, at := &fs[i], fmt.Sprintf("%s[%d]", field, i)
		repeats := f.Type == gatewayv1.HTTPRouteFilterRequestMirror || f.Type == gatewayv1.HTTPRouteFilterExtensionRef
		c.must(!seen[f.Type] || repeats, at, "%s cannot be repeated", f.Type)
		seen[f.Type] = true
		c.filter(at, f, prefix)
	}
	c.must(!seen[gatewayv1.HTTPRouteFilterRequestRedirect] || !seen[gatewayv1.HTTPRouteFilterURLRewrite], field,
		"RequestRedirect and URLRewrite must not be used together")
	return seen[gatewayv1.HTTPRouteFilterRequestRedirect]
}

func (c *checker) filter(field string, f *gatewayv1.HTTPRouteFilter, prefix bool) {
	known := false
	for _, member := range []struct {
		kind  gatewayv1.HTTPRouteFilterType
		field string
		set   bool
	}{
		{gatewayv1.HTTPRouteFilterRequestHeaderModifier, "requestHeaderModifier", f.RequestHeaderModifier != nil},
		{gatewayv1.HTTPRouteFilterResponseHeaderModifier, "responseHeaderModifier", f.ResponseHeaderModifier != nil},
		{gatewayv1.HTTPRouteFilterRequestMirror, "requestMirror", f.RequestMirror != nil},
		{gatewayv1.HTTPRouteFilterRequestRedirect, "requestRedirect", f.RequestRedirect != nil},
		{gatewayv1.HTTPRouteFilterURLRewrite, "urlRewrite", f.URLRewrite != nil},
		{gatewayv1.HTTPRouteFilterCORS, "cors", f.CORS != nil},
		{gatewayv1.HTTPRouteFilterExternalAuth, "externalAuth", f.ExternalAuth != nil},
		{gatewayv1.HTTPRouteFilterExtensionRef, "extensionRef", f.ExtensionRef != nil},
	} {
		known = known || f.Type == member.kind
		switch {
		case f.Type == member.kind && !member.set:
			c.fail(field+"."+member.field, "must be set for type %s", f.Type)
		case f.Type != member.kind && member.set:
			c.fail(field+"."+member.field, "must not be set for type %s", f.Type)
		}
	}
	c.must(known, field+".type", "%q is not a filter", f.Type)
	c.modifier(field+".requestHeaderModifier", f.RequestHeaderModifier)
	c.modifier(field+".responseHeaderModifier", f.ResponseHeaderModifier)
	if r := f.RequestRedirect; r != nil {
		at := field + ".requestRedirect"
		c.must(r.Scheme == nil || *r.Scheme == "http" || *r.Scheme == "https", at+".scheme", "must be http or https")
		c.preciseHostname(at+".hostname", r.Hostname)
		if r.Port != nil {
			c.port(at+".port", *r.Port)
		}
		switch *r.StatusCode {
		case 301, 302, 303, 307, 308:
		default:
			c.fail(at+".statusCode", "must be 301, 302, 303, 307 or 308")
		}
		c.pathModifier(at+".path", r.Path, prefix)
	}
	if r := f.URLRewrite; r != nil {
		c.preciseHostname(field+".urlRewrite.hostname", r.Hostname)
		c.pathModifier(field+".urlRewrite.path", r.Path, prefix)
	}
	if m := f.RequestMirror; m != nil {
		c.backend(field+".requestMirror.backendRef", &m.BackendRef)
	}
}

func (c *checker) preciseHostname(field string, h *gatewayv1.PreciseHostname) {
	if h != nil {
		c.must(len(*h) <= 253 && subdomainName.MatchString(string(*h)), field, "%q is not a hostname without a wildcard", *h)
	}
}

func (c *checker) modifier(field string, m *gatewayv1.HTTPHeaderFilter) {
	if m == nil {
		return
	}
	list := func(name string, hs []gatewayv1.HTTPHeader) {
		c.between(field+"."+name, len(hs), 0, 16)
		seen := make(map[gatewayv1.HTTPHeaderName]bool)
		for i, h := range hs {
			at := fmt.Sprintf("%s.%s[%d]", field, name, i)
			c.header(at+".name", string(h.Name))
			c.must(!seen[h.Name], at+".name", "%q is there twice", h.Name)
			seen[h.Name] = true
			c.must(h.Value != "" && len(h.Value) <= 4096, at+".value", "must have 1 to 4096 characters")
		}
	}
	list("set", m.Set)
	list("add", m.Add)
	c.between(field+".remove", len(m.Remove), 0, 16)
}

func (c *checker) pathModifier(field string, m *gatewayv1.HTTPPathModifier, prefix bool) {
	if m == nil {
		return
	}
	full, part := m.Type == gatewayv1.FullPathHTTPPathModifier, m.Type == gatewayv1.PrefixMatchHTTPPathModifier
	c.must(full || part, field+".type", "%q is unknown; use ReplaceFullPath or ReplacePrefixMatch", m.Type)
	c.must(full == (m.ReplaceFullPath != nil), field+".replaceFullPath", "must be set with type ReplaceFullPath, and only then")
	c.must(part == (m.ReplacePrefixMatch != nil), field+".replacePrefixMatch", "must be set with type ReplacePrefixMatch, and only then")
	for _, v := range []*string{m.ReplaceFullPath, m.ReplacePrefixMatch} {
		c.must(v == nil || len(*v) <= 1024, field, "must have at most 1024 characters")
	}
	c.must(!part || prefix, field, "ReplacePrefixMatch needs a rule with exactly one match, of type PathPrefix")
}
