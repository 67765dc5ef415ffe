package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What is rendered for each preset, and for values that use everything; without
// the CRDs, which are as in config/crd.
func TestGolden(t *testing.T) {
	for _, i := range installations(t) {
		t.Run(i.name, func(t *testing.T) {
			golden(t, "testdata/"+i.name+".yaml", render(t, append(i.args, class, "--set", "crds.install=false")...))
		})
	}
}

// The CRDs are those of config/crd, and stay when the release goes.
func TestCRDs(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/headgate.dev_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	rendered := make(map[string]*unstructured.Unstructured)
	for _, o := range objects(t, render(t)) {
		if o.GetKind() == "CustomResourceDefinition" {
			rendered[o.GetName()] = o
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := objects(t, string(text))[0]
		got := rendered[want.GetName()]
		delete(rendered, want.GetName())
		if got == nil {
			t.Errorf("%s is not installed", want.GetName())
			continue
		}
		if got.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s goes with the release, and all its objects with it", want.GetName())
		}
		for k, v := range want.GetLabels() {
			if got.GetLabels()[k] != v {
				t.Errorf("%s lacks the label %s", want.GetName(), k)
			}
		}
		if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
			t.Errorf("%s (-config/crd +chart):\n%s", want.GetName(), diff)
		}
	}
	for name := range rendered {
		t.Errorf("%s is not in config/crd", name)
	}
	if o := find(objects(t, render(t, "--set", "crds.install=false")), "CustomResourceDefinition"); o != nil {
		t.Errorf("%s is installed all the same", o.GetName())
	}
}

// A package has a semantic version, whatever git says. Its pods run the image of
// that version, by the tag that make image gives it, and have it as a label.
func TestVersion(t *testing.T) {
	tags := map[string]string{"release/x": "release-x", "v1.2.3+build.7": "v1.2.3-build.7"} // all others are tags as they are
	for described, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3-5-g0123abc": "1.2.4-dev.5.g0123abc",
		"v1.2.3-rc.1-5-g0123abc": "1.2.3-rc.1.5.g0123abc", "v1.2.3-dirty": "1.2.4-dev.0.dirty",
		"v1.2.3-5-g0123abc-dirty": "1.2.4-dev.5.g0123abc.dirty", "0123456": "0.0.0-dev.g0123456",
		"4fdc115-dirty": "0.0.0-dev.g4fdc115.dirty", "dev": "0.0.0-dev", "release/x": "0.0.0-release-x",
		"v1.2.3+build.7": "0.0.0-v1-2-3-build-7",
	} {
		out, err := exec.CommandContext(t.Context(), "../../charts/version.sh", described).Output()
		got := strings.TrimSpace(string(out))
		if err != nil || got != want {
			t.Errorf("%s is %q, want %q: %v", described, got, want, err)
		}
		dir := t.TempDir()
		if _, complaint, err := helm(t.Context(), "package", directory, "--destination", dir, "--version", got, "--app-version", described); err != nil {
			t.Errorf("helm does not take %s: %v %s", got, err, complaint)
			continue
		}
		manifest, complaint, err := helm(t.Context(), "template", "headgate", filepath.Join(dir, "headgate-"+got+".tgz"))
		if err != nil {
			t.Errorf("%s: %v %s", described, err, complaint)
			continue
		}
		tag := described
		if other, ok := tags[described]; ok {
			tag = other
		}
		if image := "image: ghcr.io/headgate/headgate:" + tag + "\n"; !strings.Contains(manifest, image) {
			t.Errorf("%s: no %s", described, image)
		}
		for _, o := range objects(t, manifest) {
			label := o.GetLabels()["app.kubernetes.io/version"]
			if wrong := validation.IsValidLabelValue(label); len(wrong) > 0 || o.GetKind() == "DaemonSet" && label == "" {
				t.Errorf("%s: %s %s has the label %q: %s", described, o.GetKind(), o.GetName(), label, wrong)
			}
		}
	}
}

// The linter finds nothing to complain about, whatever the preset.
func TestLint(t *testing.T) {
	for _, i := range installations(t) {
		if out, complaint, err := helm(t.Context(), append([]string{"lint", directory, "--strict"}, i.args...)...); err != nil {
			t.Errorf("%s: %v\n%s%s", i.name, err, out, complaint)
		}
	}
}

// The class is made when the cluster has the API, or when that is asked for.
func TestGatewayClass(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"auto without the API":   {nil, ""},
		"auto with the API":      {[]string{class}, "headgate"},
		"always without the API": {[]string{"--set", "gatewayClass.create=always"}, "headgate"},
		"never with the API":     {[]string{class, "--set", "gatewayClass.create=never"}, ""},
		"another name":           {[]string{class, "--set", "gatewayClass.name=edge"}, "edge"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if o := find(objects(t, render(t, c.args...)), "GatewayClass"); o != nil {
				got = o.GetName()
				if controller, _, _ := unstructured.NestedString(o.Object, "spec", "controllerName"); controller != "headgate.dev/gateway-controller" {
					t.Errorf("the class is for %q", controller)
				}
			}
			if got != c.want {
				t.Errorf("made %q, want %q", got, c.want)
			}
		})
	}
}

// The class names its parameters, in the namespace of the release where none is said.
func TestClassParameters(t *testing.T) {
	for value, want := range map[string]string{"": "", "all": namespace + "/all", "infra/all": "infra/all"} {
		o := find(objects(t, render(t, class, "--set", "gatewayClass.parameters="+value)), "GatewayClass")
		ref, _, err := unstructured.NestedStringMap(o.Object, "spec", "parametersRef")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if ref != nil {
			got = ref["namespace"] + "/" + ref["name"]
		}
		if got != want {
			t.Errorf("with %q it names %q, want %q", value, got, want)
		}
	}
}

// The monitor is made when the cluster has its kind, or when that is asked for.
func TestServiceMonitor(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want bool
	}{
		"auto without the kind":   {[]string{"--set", "metrics.serviceMonitor.create=auto"}, false},
		"auto with the kind":      {[]string{"--set", "metrics.serviceMonitor.create=auto", "--api-versions=monitoring.coreos.com/v1/ServiceMonitor"}, true},
		"always without the kind": {[]string{"--set", "metrics.serviceMonitor.create=always"}, true},
		"by default":              {[]string{"--api-versions=monitoring.coreos.com/v1/ServiceMonitor"}, false},
	} {
		if got := find(objects(t, render(t, append(c.args, "--set", "metrics.enabled=true")...)), "ServiceMonitor") != nil; got != c.want {
			t.Errorf("%s: made %v, want %v", name, got, c.want)
		}
	}
}

// GOMEMLIMIT is nine tenths of the memory limit, in bytes.
func TestMemoryLimit(t *testing.T) {
	for limit, want := range map[string]string{
		"100Mi": "94371840", "1Gi": "966367641", "1000k": "900000", "2G": "1800000000", "64Ki": "58982", "536870912": "483183820", "null": "",
	} {
		pod := find(objects(t, render(t, "--set", "resources.limits.memory="+limit)), "DaemonSet")
		containers, _, err := unstructured.NestedSlice(pod.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("%v %v", containers, err)
		}
		env, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "env")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range env {
			if e := e.(map[string]any); e["name"] == "GOMEMLIMIT" {
				got = e["value"].(string)
			}
		}
		if got != want {
			t.Errorf("limit %s: GOMEMLIMIT %q, want %q", limit, got, want)
		}
	}
}

// On the node's network the pods must not declare ports: the API server would
// make host ports of them, and the next pod would find no node.
func TestNoPortsOnTheNode(t *testing.T) {
	for _, i := range installations(t) {
		for _, o := range objects(t, render(t, i.args...)) {
			if o.GetKind() == "DaemonSet" && strings.Contains(render(t, i.args...), "containerPort") {
				t.Errorf("%s declares ports", i.name)
			}
		}
	}
}

// Never both: no Service of type LoadBalancer beside pods on the node's network.
func TestOneWayIn(t *testing.T) {
	for _, i := range installations(t) {
		host, balanced := false, false
		for _, o := range objects(t, render(t, i.args...)) {
			switch kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); {
			case o.GetKind() == "DaemonSet":
				host = true
			case o.GetKind() == "Service" && kind == "LoadBalancer":
				balanced = true
			}
		}
		if host == balanced {
			t.Errorf("%s: on the node's network %v, behind a Service %v", i.name, host, balanced)
		}
	}
}

// Two releases share no object, no Lease and no directory of a node.
func TestTwoReleases(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range []string{"headgate", "second"} {
		out, complaint, err := helm(t.Context(), "template", name, directory, "--namespace", namespace, class, "--set", "crds.install=false,gatewayClass.name="+name)
		if err != nil {
			t.Fatal(err, complaint)
		}
		for _, o := range objects(t, out) {
			id := o.GetKind() + " " + o.GetName()
			if seen[id] {
				t.Errorf("%s is in both", id)
			}
			seen[id] = true
		}
		want := []string{"--leader-election-name=headgate-leader", "path: /run/headgate\n"}
		if name == "second" {
			want = []string{"--leader-election-name=second-headgate-leader", "path: /run/second-headgate\n"}
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %q", name, w)
			}
		}
	}
}

// Every flag that the chart passes on is one that may not be in extraArgs.
func TestExtraArgs(t *testing.T) {
	for _, i := range installations(t) {
		if !strings.HasSuffix(i.name, "everything") {
			continue
		}
		manifest := render(t, i.args...)
		for _, line := range strings.Split(manifest, "\n") {
			flag, ok := strings.CutPrefix(strings.TrimSpace(line), "- --")
			if !ok {
				continue
			}
			flag, _, _ = strings.Cut(flag, "=")
			_, complaint, err := helm(t.Context(), "template", "x", directory, "--set-json", `extraArgs=["--`+flag+`=x"]`)
			if err == nil || !strings.Contains(complaint, "--"+flag+" is set by the chart") {
				t.Errorf("extraArgs=[--%s=x]: %v %s", flag, err, complaint)
			}
		}
	}
}

// Presets say in their first line what they are for, and are documented.
func TestPresets(t *testing.T) {
	doc, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range installations(t) {
		j := slices.Index(i.args, "--values")
		if j < 0 || !strings.Contains(i.args[j+1], "presets") {
			continue
		}
		text, err := os.ReadFile(i.args[j+1])
		if err != nil || !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not say what it is for: %v", i.name, err)
		}
		if !strings.Contains(string(doc), "presets/"+filepath.Base(i.args[j+1])) {
			t.Errorf("docs/install.md does not name %s", i.args[j+1])
		}
	}
}
