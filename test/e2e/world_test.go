package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/test/cluster/binaries"
	"github.com/headgate/headgate/test/cluster/cluster"
)

// Where the node is, and where the release is on it.
const (
	nodeAddress = "10.90.0.2"
	namespace   = "headgate-system"
)

// world is a node, and the ways to it that a person has.
type world struct {
	*cluster.Cluster
	dir string // looks like the repository to those who follow the README
}

// newWorld starts a node with the images, and ends it after the test.
func newWorld(t *testing.T, dir string, images ...string) *world {
	t.Helper()
	cache, err := binaries.OpenDefault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Build(t.Context(), binaries.All()[0], os.Stderr); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{Mode: cluster.Node, Binaries: cache.Dir(), Images: images, Output: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Errorf("end the node: %v", err)
		}
	})
	return &world{Cluster: c, dir: dir}
}

// shell runs lines as a person would type them: with kubectl and helm that reach
// the cluster. It returns what they print.
func (w *world) shell(ctx context.Context, lines string) (string, error) {
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", lines)
	c.Dir = w.dir
	helm := filepath.Join(w.dir, "helm")
	c.Env = append(os.Environ(),
		"KUBECONFIG="+w.Kubeconfig(), "PATH="+w.Bin()+":"+os.Getenv("PATH"), "KUBECACHEDIR="+filepath.Join(w.dir, "kubectl"),
		"HELM_CACHE_HOME="+helm, "HELM_CONFIG_HOME="+helm, "HELM_DATA_HOME="+helm,
		"HTTPS_PROXY=", "https_proxy=", "HTTP_PROXY=", "http_proxy=")
	c.WaitDelay = 5 * time.Second
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s\n%w: %s%s", lines, err, out.String(), complaint.String())
	}
	return out.String(), nil
}

// run is shell, for what must work.
func (w *world) run(t *testing.T, lines string) string {
	t.Helper()
	out, err := w.shell(t.Context(), lines)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// field reads one field of an object, by a JSON path such as {.status.phase}.
func (w *world) field(t *testing.T, object, path string) string {
	t.Helper()
	return strings.TrimSpace(w.run(t, fmt.Sprintf("kubectl get %s -o jsonpath='%s'", object, path)))
}

// until runs lines until what they print is accepted, for at most d, and returns
// how long it took.
func (w *world) until(t *testing.T, d time.Duration, lines string, accept func(string) bool) time.Duration {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for {
		out, err := w.shell(ctx, lines)
		if err == nil && accept(out) {
			return time.Since(start)
		}
		if ctx.Err() != nil {
			t.Fatalf("not within %v: %s\nlast output: %s %v", d, lines, out, err)
		}
		wait(ctx, 100*time.Millisecond)
	}
}

// condition is a JSON path to the reason and the message of an object's condition.
func condition(kind string) string {
	return fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.status} {.reason}: {.message}{end}`, kind)
}

// explain prints the state of the installation when a test has failed.
func (w *world) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := w.shell(ctx, `kubectl get pods -A -o wide || true
kubectl describe pods -n `+namespace+` || true
kubectl get gatewayclass,gateway,httproute -A -o yaml || true
kubectl logs -n `+namespace+` -l app.kubernetes.io/name=headgate --tail 2000 --prefix --all-containers | grep -v request_id | tail -60 || true`)
	t.Logf("%s\n%v", out, err)
}

// figure notes a measured figure in the test's output, and in the file that
// HEADGATE_E2E_FIGURES names.
func figure(t *testing.T, name, format string, args ...any) {
	t.Helper()
	line := name + ": " + fmt.Sprintf(format, args...)
	t.Log(line)
	path := os.Getenv("HEADGATE_E2E_FIGURES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, "-", line); err != nil {
		t.Error(err)
	}
}
