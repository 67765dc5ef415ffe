package chart

import (
	"strings"
	"testing"
)

// Nonsense is refused with words that name the value.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		set  string // of --set-json
		want string
	}{
		{"an unknown value", `bogus=1`, "additional properties 'bogus' not allowed"},
		{"an unknown value below", `hostNetwork.adressPool=["192.0.2.0/24"]`, "'/hostNetwork': additional properties 'adressPool' not allowed"},
		{"an unknown mode", `mode="both"`, "'/mode': value must be one of 'hostNetwork', 'loadBalancer'"},
		{"a port beyond", `loadBalancer.ports=[80,70000]`, "'/loadBalancer/ports/1': maximum: got 70,000, want 65,535"},
		{"a port twice", `loadBalancer.ports=[80,80]`, "'/loadBalancer/ports': items at 0 and 1 are equal"},
		{"no ports", `loadBalancer.ports=[]`, "'/loadBalancer/ports': minItems: got 0, want 1"},
		{"no replicas", `loadBalancer.replicas=0`, "'/loadBalancer/replicas': minimum: got 0, want 1"},
		{"a policy", `loadBalancer.externalTrafficPolicy="local"`, "'/loadBalancer/externalTrafficPolicy': value must be one of 'Local', 'Cluster'"},
		{"a range", `loadBalancer.sourceRanges=["everyone"]`, "'/loadBalancer/sourceRanges/0': 'everyone' does not match pattern"},
		{"a budget of nothing", `loadBalancer.podDisruptionBudget.maxUnavailable=0`, "'/loadBalancer/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1"},
		{"a pool that is none", `hostNetwork.addressPool=["192.0.2.64-192.0.2.70"]`, "'/hostNetwork/addressPool/0'"},
		{"an address that is none", `hostNetwork.nodeAddresses=["edge.example.com"]`, "'/hostNetwork/nodeAddresses/0'"},
		{"a relative directory", `hostNetwork.handover.directory="run/headgate"`, "'/hostNetwork/handover/directory'"},
		{"a text for a number", `drainPeriodSeconds="30s"`, "'/drainPeriodSeconds': got string, want integer"},
		{"a time below zero", `drainPeriodSeconds=-1`, "'/drainPeriodSeconds': minimum: got -1, want 0"},
		{"a text for a truth", `gatewayServices="yes"`, "'/gatewayServices': got string, want boolean"},
		{"a controller without a domain", `controllerName="headgate"`, "'/controllerName': 'headgate' does not match pattern"},
		{"a class in capitals", `gatewayClass.name="Edge"`, "'/gatewayClass/name': 'Edge' does not match pattern"},
		{"parameters with two slashes", `gatewayClass.parameters="a/b/c"`, "'/gatewayClass/parameters': 'a/b/c' does not match pattern"},
		{"create is not a truth", `gatewayClass.create=true`, "'/gatewayClass/create'"},
		{"a tag with a blank", `image.tag="v1 beta"`, "'/image/tag'"},
		{"a digest that is none", `image.digest="abc"`, "'/image/digest'"},
		{"a pull policy", `image.pullPolicy="Sometimes"`, "'/image/pullPolicy': value must be one of"},
		{"secrets by name only", `imagePullSecrets=["registry"]`, "'/imagePullSecrets/0': got string, want object"},
		{"a level", `logging.level="trace"`, "'/logging/level': value must be one of 'debug', 'info', 'warn', 'error'"},
		{"a format", `logging.format="text"`, "'/logging/format': value must be one of"},
		{"an access log elsewhere", `accessLog="/var/log/access"`, "'/accessLog': value must be one of 'stdout', 'off'"},
		{"a proxy by name", `trustedCIDRs=["proxy"]`, "'/trustedCIDRs/0'"},
		{"an argument that is no flag", `extraArgs=["idle-timeout=2m"]`, "'/extraArgs/0'"},
		{"memory with a strange unit", `resources.limits.memory="512MB"`, "'/resources/limits/memory': '512MB' does not match pattern"},
		{"a CPU that is none", `resources.requests.cpu="fast"`, "'/resources/requests/cpu'"},
		{"a port of root", `metrics.port=80`, "'/metrics/port': minimum: got 80, want 1,024"},
		{"an interval", `metrics.serviceMonitor.interval="often"`, "'/metrics/serviceMonitor/interval'"},
		{"a label that is a number", `podLabels.team=7`, "'/podLabels/team': got number, want string"},
		{"a namespace in capitals", `rbac.secretNamespaces=["Certs"]`, "'/rbac/secretNamespaces/0'"},
		{"a long name", `fullnameOverride="a-name-of-more-than-forty-characters-is-cut"`, "'/fullnameOverride': maxLength: got 43, want 40"},

		{"a pool behind a Service", `mode="loadBalancer",hostNetwork.addressPool=["192.0.2.64/26"]`,
			"hostNetwork.addressPool is for mode hostNetwork: in mode loadBalancer Gateways have the addresses of the Service. Leave it out, or set mode=hostNetwork."},
		{"addresses to listen on behind a Service", `mode="loadBalancer",hostNetwork.bindAddresses=["192.0.2.1"]`, "hostNetwork.bindAddresses is for mode hostNetwork"},
		{"a pool and a bind address", `hostNetwork.addressPool=["192.0.2.64/26"],hostNetwork.bindAddresses=["192.0.2.1"]`,
			"hostNetwork.bindAddresses and hostNetwork.addressPool do not go together"},
		{"a pool and a node's address", `hostNetwork.addressPool=["192.0.2.64/26"],hostNetwork.nodeAddresses=["192.0.2.1"]`,
			"hostNetwork.nodeAddresses and hostNetwork.addressPool do not go together"},
		{"metrics on a listener's port", `mode="loadBalancer",loadBalancer.ports=[80,9902],metrics.enabled=true`,
			"metrics.port 9902 is in loadBalancer.ports, where Gateways listen. Give one of them another port."},
		{"the admin's port is a listener's", `mode="loadBalancer",loadBalancer.ports=[80,9901]`, "adminPort 9901 is in loadBalancer.ports"},
		{"one port for both", `metrics.enabled=true,metrics.port=9901`, "metrics.port and adminPort are both 9901"},
		{"a monitor of nothing", `metrics.serviceMonitor.create="auto"`, "metrics.serviceMonitor needs metrics.enabled=true"},
		{"nobody's account", `serviceAccount.create=false`, "serviceAccount.create=false needs serviceAccount.name"},
		{"narrowed rights of none", `rbac.create=false,rbac.secretNamespaces=["certs"]`, "rbac.secretNamespaces needs rbac.create=true"},
		{"a flag that is a value", `extraArgs=["--workers=2"]`, "extraArgs: --workers is set by the chart; use the value workers instead."},
		{"the pods' own label", `podLabels={"app.kubernetes.io/name":"edge"}`, "podLabels: app.kubernetes.io/name is how the chart finds its own pods"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, complaint, err := helm(t.Context(), "template", "headgate", directory, "--set-json", c.set)
			if err == nil {
				t.Fatalf("--set-json %s is taken:\n%s", c.set, out)
			}
			if !strings.Contains(complaint, c.want) {
				t.Errorf("--set-json %s is refused with\n%s\nwant %q", c.set, complaint, c.want)
			}
		})
	}
}
