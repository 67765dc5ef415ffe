package conformance

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

// TestConformance is the whole suite. What it needs it is told by flags and
// KUBECONFIG; see run.
func TestConformance(t *testing.T) { conformance.RunConformance(t) }
