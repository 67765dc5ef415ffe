package file

import (
	"fmt"
	"strings"
	"testing"
)

// TestRules checks the rules that the CRDs have in CEL, and those of the built-in
// kinds: each object is refused for one reason.
func TestRules(t *testing.T) {
	gateway := func(listeners string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\nspec:\n  gatewayClassName: c\n  listeners: [" + listeners + "]\n"
	}
	route := func(spec string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {" + spec + "}\n"
	}
	rule := func(s string) string { return route("rules: [{" + s + "}]") }
	filter := func(s string) string { return rule("filters: [{" + s + "}]") }
	service := func(s string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {" + s + "}\n"
	}
	slice := func(s string) string {
		return "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, labels: {kubernetes.io/service-name: s}}\n" + s
	}
	const http = "{name: a, port: 80, protocol: HTTP}"
	many := func(n int, s string) string {
		return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ")
	}
	for _, tt := range []struct{ name, text, want string }{
		{"good gateway", gateway(http), ""},
		{"no listener", gateway(""), "spec.listeners: must have at least 1"},
		{"listener name twice", gateway(http + ", {name: a, port: 81, protocol: HTTP}"), `spec.listeners[1].name: "a" is the name of another listener`},
		{"listener twice", gateway(http + ", {name: b, port: 80, protocol: HTTP}"), "spec.listeners[1]: listener a has the same port, protocol and hostname"},
		{"other hostname", gateway(http + ", {name: b, port: 80, protocol: HTTP, hostname: b.example.com}"), ""},
		{"tls for HTTP", gateway("{name: a, port: 80, protocol: HTTP, tls: {certificateRefs: [{name: c}]}}"), "spec.listeners[0].tls: protocol HTTP has no tls"},
		{"tls for TCP", gateway("{name: a, port: 80, protocol: TCP, tls: {certificateRefs: [{name: c}]}}"), "spec.listeners[0].tls: protocol TCP has no tls"},
		{"no tls for TLS", gateway("{name: a, port: 80, protocol: TLS}"), "spec.listeners[0].tls: must be set for protocol TLS"},
		{"passthrough for HTTPS", gateway("{name: a, port: 80, protocol: HTTPS, tls: {mode: Passthrough}}"), "spec.listeners[0].tls.mode: protocol HTTPS needs mode Terminate"},
		{"passthrough for TLS", gateway("{name: a, port: 80, protocol: TLS, tls: {mode: Passthrough}}"), ""},
		{"no certificate", gateway("{name: a, port: 80, protocol: HTTPS, tls: {}}"), "spec.listeners[0].tls.certificateRefs: mode Terminate needs a certificate"},
		{"hostname for TCP", gateway("{name: a, port: 80, protocol: TCP, hostname: a.example.com}"), "spec.listeners[0].hostname: protocol TCP has no hostname"},
		{"address twice", gateway(http) + "  addresses: [{value: 10.0.0.1}, {value: 10.0.0.1}]\n", `spec.addresses[1]: "10.0.0.1" is there twice`},
		{"not an address", gateway(http) + "  addresses: [{value: 10.0.0.300}]\n", `spec.addresses[0].value: "10.0.0.300" is not an IP address`},
		{"not a hostname", gateway(http) + "  addresses: [{type: Hostname, value: A}]\n", "spec.addresses[0].value: \"A\" is not a hostname"},

		{"good route", route("parentRefs: [{name: g}], rules: [{backendRefs: [{name: s, port: 80}]}]"), ""},
		{"empty rules", route("rules: []"), "spec.rules: must have at least 1"},
		{"too many matches", route("rules: [" + many(3, "{matches: ["+many(60, "{}")+"]}") + "]"), "spec.rules: have 180 matches together, and must have at most 128"},
		{"parent twice", route("parentRefs: [{name: g}, {name: g}]"), "spec.parentRefs[1]: the same section of g is referenced twice"},
		{"parent with and without section", route("parentRefs: [{name: g}, {name: g, sectionName: a}]"), "spec.parentRefs[1]: sectionName or port must be set on all references to g, or on none"},
		{"sections of one parent", route("parentRefs: [{name: g, sectionName: a}, {name: g, sectionName: b}, {name: g, namespace: other}]"), ""},
		{"ports of one parent", route("parentRefs: [{name: g, port: 80}, {name: g, port: 81}]"), ""},
		{"redirect with backend", rule("filters: [{type: RequestRedirect, requestRedirect: {}}], backendRefs: [{name: s, port: 80}]"), "spec.rules[0]: RequestRedirect must not be used together with backendRefs"},
		{"redirect and rewrite", rule("filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {}}]"), "spec.rules[0].filters: RequestRedirect and URLRewrite must not be used together"},
		{"filter twice", rule("filters: [" + many(2, "{type: URLRewrite, urlRewrite: {}}") + "]"), "spec.rules[0].filters[1]: URLRewrite cannot be repeated"},
		{"mirrors", rule("filters: [" + many(2, "{type: RequestMirror, requestMirror: {backendRef: {name: s, port: 80}}}") + "]"), ""},
		{"prefix without match", rule("matches: [{path: {type: Exact, value: /a}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]"),
			"spec.rules[0].filters[0].urlRewrite.path: ReplacePrefixMatch needs a rule with exactly one match, of type PathPrefix"},
		{"prefix of a backend without match", rule("matches: [{}, {}], backendRefs: [{name: s, port: 80, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}]}]"),
			"spec.rules[0].backendRefs[0].filters[0].urlRewrite.path: ReplacePrefixMatch needs a rule with exactly one match, of type PathPrefix"},
		{"filter without its part", filter("type: RequestHeaderModifier"), "spec.rules[0].filters[0].requestHeaderModifier: must be set for type RequestHeaderModifier"},
		{"filter with another's part", filter("type: URLRewrite, urlRewrite: {}, requestRedirect: {}"), "spec.rules[0].filters[0].requestRedirect: must not be set for type URLRewrite"},
		{"unknown filter", filter("type: Wish"), `spec.rules[0].filters[0].type: "Wish" is not a filter`},
		{"full path without value", filter("type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath}}"), "spec.rules[0].filters[0].requestRedirect.path.replaceFullPath: must be set with type ReplaceFullPath, and only then"},
		{"full path with a prefix", filter("type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /a, replacePrefixMatch: /b}}"),
			"spec.rules[0].filters[0].requestRedirect.path.replacePrefixMatch: must be set with type ReplacePrefixMatch, and only then"},
		{"backend without port", rule("backendRefs: [{name: s}]"), "spec.rules[0].backendRefs[0].port: must be set for a Service"},
		{"backend of another kind", rule("backendRefs: [{group: example.com, kind: Bucket, name: s}]"), ""},
		{"timeouts", rule("timeouts: {request: 1s, backendRequest: 2s}"), "spec.rules[0].timeouts.backendRequest: must not be longer than request"},
		{"timeout that is off", rule("timeouts: {request: 0s, backendRequest: 2s}"), ""},
		{"path", rule("matches: [{path: {value: a}}]"), "spec.rules[0].matches[0].path.value: path \"a\" must start with a slash, and have only characters that paths have"},
		{"path with dots", rule("matches: [{path: {value: /a/..}}]"), "spec.rules[0].matches[0].path.value: path \"/a/..\" must not end with a dot segment"},
		{"path with a fragment", rule("matches: [{path: {type: Exact, value: \"/a//b\"}}]"), "spec.rules[0].matches[0].path.value: path \"/a//b\" must not contain //"},
		{"expression", rule("matches: [{path: {type: RegularExpression, value: \"//[\"}}]"), ""},

		{"good service", service("ports: [{port: 80}]"), ""},
		{"no port", service("type: ClusterIP"), "spec.ports: must have at least 1"},
		{"headless without port", service("clusterIP: None"), ""},
		{"service type", service("type: Magic, ports: [{port: 80}]"), `spec.type: "Magic" is unknown`},
		{"external name", service("type: ExternalName"), "spec.externalName: must be set for type ExternalName"},
		{"ports without names", service("ports: [{port: 80}, {name: b, port: 81}]"), "spec.ports[0].name: must be set when there are several ports"},
		{"port names", service("ports: [{name: a, port: 80}, {name: a, port: 81}]"), `spec.ports[1].name: "a" is the name of another port`},
		{"port twice", service("ports: [{name: a, port: 80}, {name: b, port: 80}]"), "spec.ports[1]: port 80 with TCP is there twice"},
		{"port of two protocols", service("ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]"), ""},
		{"port", service("ports: [{port: 0, targetPort: 1}]"), "spec.ports[0].port: port 0 is not between 1 and 65535"},
		{"protocol", service("ports: [{port: 80, protocol: tcp}]"), `spec.ports[0].protocol: "tcp" is unknown; use TCP, UDP or SCTP`},
		{"target port", service("ports: [{port: 80, targetPort: 70000}]"), "spec.ports[0].targetPort: port 70000 is not between 1 and 65535"},

		{"good slice", slice("addressType: IPv4\nendpoints: [{addresses: [127.0.0.1]}]\nports: [{port: 80}]\n"), ""},
		{"good names", slice("addressType: FQDN\nendpoints: [{addresses: [a.example.com]}]\n"), ""},
		{"no address type", slice("endpoints: []\n"), `addressType: "" is unknown; use IPv4, IPv6 or FQDN`},
		{"wrong family", slice("addressType: IPv6\nendpoints: [{addresses: [10.0.0.1]}]\n"), `endpoints[0].addresses[0]: "10.0.0.1" is not an IPv6 address`},
		{"not a name", slice("addressType: FQDN\nendpoints: [{addresses: [a_b]}]\n"), `endpoints[0].addresses[0]: "a_b" is not a name`},
		{"no addresses", slice("addressType: IPv4\nendpoints: [{addresses: []}]\n"), "endpoints[0].addresses: must have at least 1"},
		{"slice ports", slice("addressType: IPv4\nendpoints: []\nports: [{port: 80}, {port: 81}]\n"), `ports[1].name: "" is the name of another port`},
		{"slice port", slice("addressType: IPv4\nendpoints: []\nports: [{port: 0}]\n"), "ports[0].port: port 0 is not between 1 and 65535"},

		{"secret without key", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: kubernetes.io/tls\nstringData: {tls.crt: x}\n", "data: a Secret of type kubernetes.io/tls needs the key tls.key"},
		{"secret of another type", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: x}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := read(tt.text, true)
			var got []string
			for _, f := range d.faults {
				got = append(got, fmt.Sprint(f.field, ": ", f.message))
			}
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("refused: %q", got)
			case tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)):
				t.Errorf("got %q, want %q", got, tt.want)
			case tt.want != "" && len(d.objects) > 0:
				t.Error("the object counts")
			}
			if d := read(tt.text, false); len(d.faults) > 0 {
				t.Errorf("refused without checks: %v", d.faults)
			}
		})
	}
}
