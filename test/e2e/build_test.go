package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/test/cluster/image"
)

// Versions of the two releases between which an upgrade goes.
const (
	versionA = "v0.0.1-e2e"
	versionB = "v0.0.2-e2e"
)

// backendImage is what the quick start runs as its application.
const backendImage = "registry.k8s.io/gateway-api/echo-basic:v1.5.1"

// repository returns the directory that holds the chart and the README.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// command runs a program in a directory below the repository.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = filepath.Join(repository(t), dir)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out.String())
	}
}

// buildImage makes the archive of a version for this machine, as make image does
// for all, and returns its path.
func buildImage(t *testing.T, dir, version string) string {
	t.Helper()
	command(t, "test/image", "go", "run", ".", "-version", version, "-platforms", "linux/"+runtime.GOARCH, "-o", dir)
	return filepath.Join(dir, "headgate-"+version+"-linux-"+runtime.GOARCH+".tar")
}

// buildChart packages the chart of a version, as make chart does.
func buildChart(t *testing.T, dir, version string) {
	t.Helper()
	command(t, ".", "bin/helm", "package", "charts/headgate", "--destination", dir,
		"--version", strings.TrimPrefix(version, "v"), "--app-version", version)
}

// buildBackend makes the archive of the application, the conformance suite's own
// backend.
func buildBackend(t *testing.T, dir string) string {
	t.Helper()
	root, out := filepath.Join(dir, "echo"), filepath.Join(dir, "echo.tar")
	command(t, "test/conformance", "go", "build", "-ldflags", "-s -w", "-buildvcs=false",
		"-o", filepath.Join(root, "echo-basic"), "sigs.k8s.io/gateway-api/conformance/echo-basic")
	if err := image.Write(out, image.Spec{Names: []string{backendImage}, Root: root, Entrypoint: []string{"/echo-basic"}}); err != nil {
		t.Fatal(err)
	}
	return out
}
