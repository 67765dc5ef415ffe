package compile

import (
	"fmt"
	"regexp"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// match reads one match of a rule.
func (b *ruleBuilder) match(spec *gatewayv1.HTTPRouteMatch, field string) *ir.Match {
	m := &ir.Match{Path: b.pathMatch(spec.Path, field+".path")}
	if spec.Method != nil {
		switch *spec.Method {
		case gatewayv1.HTTPMethodGet, gatewayv1.HTTPMethodHead, gatewayv1.HTTPMethodPost, gatewayv1.HTTPMethodPut,
			gatewayv1.HTTPMethodDelete, gatewayv1.HTTPMethodConnect, gatewayv1.HTTPMethodOptions,
			gatewayv1.HTTPMethodTrace, gatewayv1.HTTPMethodPatch:
			m.Method = string(*spec.Method)
		default:
			b.unsupported(field+".method", "method %q is unknown; methods are in upper case", *spec.Method)
		}
	}
	seen := make(map[string]bool)
	for i, h := range spec.Headers {
		at := fmt.Sprintf("%s.headers[%d]", field, i)
		name := strings.ToLower(string(h.Name))
		// Gateway API: of equivalent names only the first counts.
		if seen[name] {
			b.set.warn(at, "header %s is matched twice; only the first counts", h.Name)
			continue
		}
		seen[name] = true
		switch {
		case !isToken(name):
			b.unsupported(at, "header name %q is malformed", h.Name)
		case name == "host":
			b.unsupported(at, "Host can't be matched as a header; use the route's hostnames")
		case isConnectionHeader(name):
			b.unsupported(at, "header %s belongs to one connection and can't be matched", h.Name)
		}
		kind := gatewayv1.HeaderMatchExact
		if h.Type != nil {
			kind = *h.Type
		}
		m.Headers = append(m.Headers, b.valueMatch(string(kind), name, h.Value, at))
	}
	seen = make(map[string]bool)
	for i, q := range spec.QueryParams {
		at := fmt.Sprintf("%s.queryParams[%d]", field, i)
		name := string(q.Name)
		if seen[name] {
			b.set.warn(at, "query parameter %s is matched twice; only the first counts", name)
			continue
		}
		seen[name] = true
		if name == "" {
			b.unsupported(at, "the name must not be empty")
		}
		kind := gatewayv1.QueryParamMatchExact
		if q.Type != nil {
			kind = *q.Type
		}
		m.Query = append(m.Query, b.valueMatch(string(kind), name, q.Value, at))
	}
	return m
}

func (b *ruleBuilder) valueMatch(kind, name, value, field string) ir.ValueMatch {
	v := ir.ValueMatch{Name: name, Value: value}
	switch kind {
	case string(gatewayv1.HeaderMatchExact):
		v.Kind = ir.MatchExact
	case string(gatewayv1.HeaderMatchRegularExpression):
		v.Kind = ir.MatchRegex
		b.regex(value, field+".value")
	default:
		b.unsupported(field+".type", "type %q is unknown; use Exact or RegularExpression", kind)
	}
	return v
}

// regex checks an expression, which must match the whole of a value.
func (b *ruleBuilder) regex(expr, field string) {
	_, err := regexp.Compile(expr)
	if err == nil {
		_, err = regexp.Compile("^(?:" + expr + ")$") // as the data plane does: it may be too large only so
	}
	if err != nil {
		b.unsupported(field, "not an RE2 regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
}

func (b *ruleBuilder) pathMatch(spec *gatewayv1.HTTPPathMatch, field string) ir.PathMatch {
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if spec != nil && spec.Type != nil {
		kind = *spec.Type
	}
	if spec != nil && spec.Value != nil {
		value = *spec.Value
	}
	m := ir.PathMatch{Value: value}
	switch kind {
	case gatewayv1.PathMatchExact:
		m.Kind = ir.MatchExact
	case gatewayv1.PathMatchPathPrefix:
		m.Kind = ir.MatchPrefix
	case gatewayv1.PathMatchRegularExpression:
		m.Kind = ir.MatchRegex
		b.regex(value, field+".value")
		return m
	default:
		b.unsupported(field+".type", "type %q is unknown; use Exact, PathPrefix or RegularExpression", kind)
		return m
	}
	normal, fault := normalPath(value)
	if fault != "" {
		b.unsupported(field+".value", "path %q %s", value, fault)
	}
	m.Value = normal
	return m
}
