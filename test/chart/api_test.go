package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

// A real API server takes everything that is rendered, in a dry run, with the
// Gateway API and without; and pods of the modes fit the pod security levels that
// they are said to fit.
func TestAccepted(t *testing.T) {
	s := startServer(t)
	for name, level := range map[string]string{namespace: "", "certs": "", "shop": "", "privileged": "privileged", "baseline": "baseline", "restricted": "restricted"} {
		s.namespace(t, name, level)
	}
	run := func(t *testing.T, args ...string) {
		for _, i := range installations(t) {
			t.Run(i.name, func(t *testing.T) {
				list := objects(t, render(t, append(i.args, args...)...))
				for _, o := range list {
					if o.GetKind() == "ServiceMonitor" {
						continue // its kind is not ours to install
					}
					err := s.Patch(t.Context(), o, client.Apply, client.DryRunAll, client.ForceOwnership, client.FieldOwner("test")) //nolint:staticcheck // the object is not one of Go
					if err != nil {
						t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
					}
				}
				s.levels(t, list)
			})
		}
	}
	t.Run("without the Gateway API", func(t *testing.T) {
		run(t, "--set", "gatewayClass.create=never")
	})
	s.installCRDs(t)
	t.Run("with the Gateway API", func(t *testing.T) { run(t, class) })
}

// levels checks which namespaces let the pods in.
func (s *server) levels(t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	workload, want := find(list, "DaemonSet"), map[string]bool{"privileged": true, "baseline": false, "restricted": false}
	if workload == nil {
		workload, want = find(list, "Deployment"), map[string]bool{"privileged": true, "baseline": true, "restricted": true}
	}
	template, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Name, pod.Spec.ServiceAccountName = "pod", ""
	for level, fits := range want {
		pod := pod.DeepCopy()
		pod.Namespace = level
		err := s.Create(t.Context(), pod, client.DryRunAll)
		switch {
		case fits && err != nil:
			t.Errorf("the level %s refuses the pod: %v", level, err)
		case !fits && (err == nil || !strings.Contains(err.Error(), "violates PodSecurity")):
			t.Errorf("the level %s takes the pod: %v", level, err)
		}
	}
}

// helm installs without the Gateway API, and says what is missing; it makes the
// class when it is run again. An uninstallation leaves nothing but the namespace.
func TestInstall(t *testing.T) {
	s := startServer(t)
	up := []string{"upgrade", "--install", "headgate", directory, "--namespace", namespace, "--create-namespace"}
	notes := s.helm(t, up...)
	golden(t, "testdata/notes/no-gateway-api.txt", said(notes))
	daemonSet := &unstructured.Unstructured{}
	daemonSet.SetAPIVersion("apps/v1")
	daemonSet.SetKind("DaemonSet")
	daemonSet.SetNamespace(namespace)
	daemonSet.SetName("headgate")
	gatewayClass := &unstructured.Unstructured{}
	gatewayClass.SetAPIVersion("gateway.networking.k8s.io/v1")
	gatewayClass.SetKind("GatewayClass")
	gatewayClass.SetName("headgate")
	if why := s.exists(t, daemonSet, true); why != "" {
		t.Error(why)
	}
	s.installCRDs(t)
	notes = s.helm(t, up...)
	golden(t, "testdata/notes/host.txt", said(notes))
	if why := s.exists(t, gatewayClass, true); why != "" {
		t.Error(why)
	}

	// The other mode takes the place of the first.
	notes = s.helm(t, append(up, "--set", "mode=loadBalancer")...)
	golden(t, "testdata/notes/load-balancer.txt", said(notes))
	eventually(t, func() string { return s.exists(t, daemonSet.DeepCopy(), false) })
	if why := s.exists(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "headgate"}}, true); why != "" {
		t.Error(why)
	}

	// MicroK8s deletes the CRDs of the Gateway API with its ingress addon. Helm can't
	// go on then; it can when they are there again.
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("gatewayclasses.gateway.networking.k8s.io")
	if err := s.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return s.exists(t, crd, false) })
	_, complaint, err := helm(t.Context(), append(up, "--kubeconfig", s.kubeconfig)...)
	if err == nil || !strings.Contains(complaint, `no matches for kind "GatewayClass"`) {
		t.Errorf("an upgrade without the CRDs: %v %s", err, complaint)
	}
	s.installCRDs(t)
	s.helm(t, up...)

	s.helm(t, "uninstall", "headgate", "--namespace", namespace)
	for _, i := range installations(t)[:1] {
		for _, o := range objects(t, render(t, append(i.args, class)...)) {
			// Our own CRDs stay, and all policies with them.
			stays := o.GetKind() == "CustomResourceDefinition"
			eventually(t, func() string { return s.exists(t, o, stays) })
		}
	}
	if why := s.exists(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, true); why != "" {
		t.Error(why)
	}
}

// The notes say what is in the way.
func TestNotes(t *testing.T) {
	s := startServer(t)
	s.installCRDs(t)
	s.namespace(t, "strict", "restricted")
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("gateways.gateway.networking.k8s.io")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"gateway.networking.k8s.io/bundle-version":"v1.4.0"}}}`))
	if err := s.Patch(t.Context(), crd, patch); err != nil {
		t.Fatal(err)
	}
	traefik := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "traefik"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := s.Create(t.Context(), traefik); err != nil {
		t.Fatal(err)
	}
	dry := []string{"upgrade", "--install", "edge", directory, "--dry-run=server", "--namespace", "strict"}
	golden(t, "testdata/notes/all-in-the-way.txt", said(s.helm(t, append(dry, "--set", "metrics.enabled=true,metrics.serviceMonitor.create=auto")...)))
	golden(t, "testdata/notes/beside-traefik.txt", said(s.helm(t, append(dry, "--values", directory+"/presets/k3s-beside-traefik.yaml")...)))
}

// said returns the notes in what helm prints.
func said(out string) string {
	_, notes, _ := strings.Cut(out, "NOTES:\n")
	return strings.TrimSpace(notes) + "\n"
}

// The notes, the documents and the controller name the version of the Gateway API
// that the code is built with.
func TestGatewayVersion(t *testing.T) {
	for _, file := range []string{
		directory + "/templates/NOTES.txt", "../../README.md", "../../docs/install.md", "../../docs/controller.md",
		"../../docs/troubleshooting.md", "../../controllers/compile/gatewayclass.go",
	} {
		for _, found := range releases(t, file) {
			if found != consts.BundleVersion {
				t.Errorf("%s names the release %s of the Gateway API, the code is built with %s", file, found, consts.BundleVersion)
			}
		}
	}
}

// releases returns the releases of the Gateway API whose files a text links to.
func releases(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`gateway-api/releases/download/(v[0-9.]+)/`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Errorf("%s does not say how to install the CRDs", file)
	}
	return out
}
