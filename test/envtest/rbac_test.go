package envtest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/node"
)

// The rights in config/rbac are enough, and none is left over: a life of the
// controller uses every verb of every resource, and is refused none.
func TestRights(t *testing.T) {
	w := newWorld(t)
	granted := w.applyRights()
	chain, key := pair(t, "a.example.com")
	w.secret("cert", chain, key)
	stats := &trouble{}
	w.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.9"}}},
	})
	r := w.start(func(o *controllers.ManagerOptions) {
		o.Config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:headgate-system:headgate",
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:headgate-system", "system:authenticated"},
		}
		o.Election = controllers.Election{Namespace: "headgate-system", Name: "headgate-leader", Identity: "one"}
		o.Compile.Addresses = compile.Addresses{Bind: []netip.Addr{netip.IPv4Unspecified()}}
		o.NodeName = w.name
		o.Report = controllers.ReportOptions{Name: w.name, NodeName: w.name, Stats: stats, Every: 100 * time.Millisecond, Pace: 100 * time.Millisecond}
	})
	w.class()
	gw := w.gateway("gw", w.https("cert"))
	w.gateway("asks", w.https("cert"), func(gw *gatewayv1.Gateway) {
		gw.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{
			Validation: &gatewayv1.FrontendTLSValidation{CACertificateRefs: []gatewayv1.ObjectReference{{Kind: "ConfigMap", Name: "ca"}}},
		}}}
	})
	hr := w.route("hr")
	w.wantRoute(hr, attached(1))
	w.eventually(func() string {
		if w.refresh(gw); len(gw.Status.Addresses) != 1 || gw.Status.Addresses[0].Value != "192.0.2.9" {
			return "the Gateway does not report the node's address"
		}
		if w.service(gw) == nil {
			return "there is no Service"
		}
		return ""
	})
	update(w, gw, func(gw *gatewayv1.Gateway) {
		gw.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{Labels: map[gatewayv1.LabelKey]gatewayv1.LabelValue{"a": "b"}}
	})
	w.eventually(func() string {
		if s := w.service(gw); s == nil || s.Labels["a"] != "b" {
			return "the Service is not changed"
		}
		return ""
	})
	w.eventually(func() string {
		if w.dataPlane(w.name) == nil {
			return "there is no DataPlane"
		}
		return ""
	})
	w.backend("web")
	stats.set(node.Cluster{Name: w.name + "/web:80", State: v1alpha1.PressureShedding, Size: 1, Active: 1, Endpoints: 1})
	w.eventually(func() string {
		if len(w.events("web")) == 0 {
			return "there is no event"
		}
		return ""
	})
	policy := w.policy("policy", "nobody", nil)
	w.wantPolicy(policy, "nobody Accepted=False/TargetNotFound@1")
	w.gone(policy)
	r.stop()
	used := make(map[string]bool)
	for _, q := range r.traffic.requests() {
		if q.status == 403 {
			t.Errorf("refused: %s %s", q.method, q.path)
		}
		if what := right(q); what != "" {
			used[what] = true
			// Older API servers can't stream lists: there each watch begins with a list.
			if resource, ok := strings.CutSuffix(what, " watch"); ok {
				used[resource+" list"] = true
			}
		}
	}
	if diff := cmp.Diff(granted, slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("rights (-granted +used):\n%s", diff)
	}
}

// right is what a request needs, such as "gateways/status patch".
func right(q request) string {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "" // discovery
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[q.method]
	if q.method == "GET" {
		verb = "list"
		if query, err := url.ParseQuery(q.query); err == nil && query.Has("watch") {
			verb = "watch"
		} else if len(parts) > 1 {
			verb = "get"
		}
	}
	return resource + " " + verb
}

// applyRights applies config/rbac and returns what it grants, sorted.
func (w *world) applyRights() []string {
	w.Helper()
	files, err := filepath.Glob("../../config/rbac/*.yaml")
	if err != nil || len(files) == 0 {
		w.Fatal("config/rbac is not found", err)
	}
	slices.SortFunc(files, func(a, b string) int { // namespaces first
		return strings.Compare(strings.Replace(a, "namespace", "0", 1), strings.Replace(b, "namespace", "0", 1))
	})
	granted := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var o unstructured.Unstructured
			if err := docs.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				w.Fatal(file, err)
			}
			if o.GetKind() == "Kustomization" {
				continue
			}
			w.create(&o)
			if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
				for _, rule := range w.rules(&o) {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							granted[resource+" "+verb] = true
						}
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(granted))
}

func (w *world) rules(o *unstructured.Unstructured) []rbacv1.PolicyRule {
	w.Helper()
	var role rbacv1.ClusterRole
	raw, err := o.MarshalJSON()
	if err != nil {
		w.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &role); err != nil {
		w.Fatal(err)
	}
	return role.Rules
}
