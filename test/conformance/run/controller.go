package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate/test/cluster/cluster"
)

const (
	namespace = "headgate-system"
	release   = "headgate"
	class     = "headgate"
)

// controller is an installed Headgate.
type controller struct {
	kubectl kubectl
	log     string // where its log goes in the end
}

// startController installs the chart, with an address pool, and returns when its
// pod is ready.
func startController(ctx context.Context, c *cluster.Cluster, p paths, b built) (*controller, error) {
	h := &controller{kubectl: kubectl{c}, log: filepath.Join(c.Logs(), "headgate.log")}
	command := exec.CommandContext(ctx, p.helm(), "upgrade", "--install", release, filepath.Join(p.repository, "charts", "headgate"),
		"--kubeconfig", c.Kubeconfig(), "--namespace", namespace, "--create-namespace", "--wait", "--timeout", "3m",
		"--set", "image.tag="+b.tag+",image.pullPolicy=Never,hostNetwork.addressPool={"+pool+"}",
		"--set", "drainPeriodSeconds=5,accessLog=off,logging.level=debug")
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+c.Dir(), "HELM_CONFIG_HOME="+c.Dir(), "HELM_DATA_HOME="+c.Dir())
	if out, err := command.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("install the chart: %w: %s", err, bytes.TrimSpace(out)), h.stop())
	}
	return h, nil
}

// alive returns an error when the controller has ended at any time.
func (h *controller) alive(ctx context.Context) error {
	out, err := h.kubectl.run(ctx, "get", "pods", "--namespace", namespace, "--selector", "app.kubernetes.io/instance="+release,
		"--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if err != nil {
		return err
	}
	if restarts := string(out); restarts != "0" {
		return fmt.Errorf("the controller should have run all the time; its containers' restarts: %q", restarts)
	}
	return nil
}

// stop keeps the log. The pod ends with the cluster.
func (h *controller) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := h.kubectl.run(ctx, "logs", "--namespace", namespace, "--selector", "app.kubernetes.io/instance="+release, "--tail", "-1")
	if err != nil {
		return fmt.Errorf("read the controller's log: %w", err)
	}
	return os.WriteFile(h.log, out, 0o644)
}

// kubectl runs kubectl as the administrator.
type kubectl struct {
	cluster *cluster.Cluster
}

func (k kubectl) run(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, filepath.Join(k.cluster.Bin(), "kubectl"), append([]string{"--kubeconfig", k.cluster.Kubeconfig()}, args...)...)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return out, nil
}

// vacant waits until what the suite has deleted at its end is gone.
func (k kubectl) vacant(ctx context.Context) error {
	_, err := k.run(ctx, "wait", "--for=delete", "--timeout=3m", "namespace/gateway-conformance-infra",
		"namespace/gateway-conformance-app-backend", "namespace/gateway-conformance-web-backend")
	return err
}

// quiet is where the output of helpers goes.
func quiet(o options) io.Writer {
	if o.verbose {
		return os.Stderr
	}
	return io.Discard
}
