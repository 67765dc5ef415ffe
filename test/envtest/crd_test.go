package envtest

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// install installs the CRDs, and returns them.
func (w *world) install() []client.Object {
	w.Helper()
	crds, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{Paths: []string{server.crds, ourCRDs}, ErrorIfPathMissing: true})
	if err != nil {
		w.Fatal(err)
	}
	var out []client.Object
	for _, c := range crds {
		out = append(out, c)
	}
	return out
}
