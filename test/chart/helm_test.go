package chart

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	directory = "../../charts/headgate"
	namespace = "headgate-system"
	// class is what makes `helm template` believe that there is a Gateway API.
	class = "--api-versions=gateway.networking.k8s.io/v1/GatewayClass"
)

var update = flag.Bool("update", false, "rewrite the golden files, and config/")

// helm runs helm and returns what it prints, and what it complains about.
func helm(ctx context.Context, args ...string) (out, complaint string, err error) {
	program, err := filepath.Abs("../../bin/helm")
	if err != nil {
		return "", "", err
	}
	if _, err := os.Stat(program); err != nil {
		return "", "", fmt.Errorf("helm is not built; run: make bin/helm")
	}
	c := exec.CommandContext(ctx, program, args...)
	// What the user's helm knows is no matter here.
	home := filepath.Join(os.TempDir(), "headgate-no-helm-home")
	c.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	return stdout.String(), stderr.String(), err
}

// render returns the manifests of a release.
func render(t *testing.T, args ...string) string {
	t.Helper()
	out, complaint, err := helm(t.Context(), append([]string{"template", "headgate", directory, "--namespace", namespace}, args...)...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, complaint)
	}
	return out
}

// objects reads the objects of a manifest.
func objects(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	docs := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		var o unstructured.Unstructured
		if err := docs.Decode(&o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, &o)
		}
	}
}

// find returns the object of a kind, or nil.
func find(list []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	for _, o := range list {
		if o.GetKind() == kind {
			return o
		}
	}
	return nil
}

// golden compares a text with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nIf this is meant, run the test with -update and read the difference.", path, diff)
	}
}

// installation is one way to install the chart.
type installation struct {
	name string
	args []string
}

// installations are those with a golden file: every preset, and what they leave
// out.
func installations(t *testing.T) []installation {
	t.Helper()
	presets, err := filepath.Glob(directory + "/presets/*.yaml")
	if err != nil || len(presets) == 0 {
		t.Fatalf("no presets: %v", err)
	}
	var out []installation
	for _, p := range presets {
		out = append(out, installation{strings.TrimSuffix(filepath.Base(p), ".yaml"), []string{"--values", p}})
	}
	return append(out,
		installation{"default", nil},
		installation{"load-balancer", []string{"--set", "mode=loadBalancer"}},
		installation{"host-everything", []string{"--values", "testdata/host-everything.values.yaml"}},
		installation{"load-balancer-everything", []string{"--values", "testdata/load-balancer-everything.values.yaml"}},
	)
}
