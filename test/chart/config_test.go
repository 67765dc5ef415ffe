package chart

import (
	"strings"
	"testing"
)

// What config/manager has is what the chart renders, so that kubectl apply -k and
// helm install are the same; -update writes it.
func TestConfig(t *testing.T) {
	manifest := render(t, class, "--set", "crds.install=false")
	parts := make(map[string]string) // by template
	for _, doc := range strings.Split(manifest, "\n---\n") {
		doc = strings.TrimPrefix(doc, "---\n")
		source, body, ok := strings.Cut(doc, "\n")
		source, is := strings.CutPrefix(source, "# Source: headgate/templates/")
		if !ok || !is {
			t.Fatalf("no source: %s", doc)
		}
		parts[source] += body + "\n"
	}
	const note = "# Written by: go test -C test/chart -run Config -update\n"
	for _, source := range []string{"daemonset.yaml", "gatewayclass.yaml"} {
		var kept []string
		for _, line := range strings.Split(strings.TrimSpace(parts[source]), "\n") {
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version":
			default:
				kept = append(kept, line)
			}
		}
		golden(t, "../../config/manager/"+source, note+strings.Join(kept, "\n")+"\n")
	}
}
