package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/cluster/cluster"
)

const (
	namespace      = "headgate-system"
	serviceAccount = "headgate"
	class          = "headgate"
)

// controller is a running Headgate.
type controller struct {
	command *exec.Cmd
	log     string
	ended   chan error
}

// startController applies the manifests of config/crd, config/rbac and the GatewayClass, and
// starts the controller on the node with the rights of its ServiceAccount. It
// returns when the controller is ready.
func startController(ctx context.Context, c *cluster.Cluster, p paths, program string) (*controller, error) {
	config := filepath.Join(p.repository, "config")
	k := kubectl{cluster: c}
	for _, args := range [][]string{
		{"apply", "--server-side", "-k", filepath.Join(config, "crd")},
		{"apply", "-k", filepath.Join(config, "rbac")},
		{"apply", "-f", filepath.Join(config, "manager", "gatewayclass.yaml")},
	} {
		if _, err := k.run(ctx, args...); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := k.identity(ctx, filepath.Dir(program))
	if err != nil {
		return nil, err
	}
	h := &controller{log: filepath.Join(c.Logs(), "headgate.log"), ended: make(chan error, 1)}
	out, err := os.Create(h.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	h.command = exec.Command(program, "controller", "--kubeconfig", kubeconfig, "--address-pool", pool,
		"--leader-election-namespace", namespace, "--access-log", "off", "--drain-period", "5s", "--log-level", "debug")
	h.command.Stdout, h.command.Stderr = out, out
	if err := c.Start(h.command); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	go func() { h.ended <- h.command.Wait() }()
	for {
		if text, err := os.ReadFile(h.log); err == nil && bytes.Contains(text, []byte("\tserving\t")) {
			return h, nil
		}
		select {
		case err := <-h.ended:
			h.ended <- err
			return nil, h.alive()
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), h.stop())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// alive returns an error when the controller has ended.
func (h *controller) alive() error {
	select {
	case err := <-h.ended:
		h.ended <- err
		return fmt.Errorf("the controller ended: %w: see %s", err, h.log)
	default:
		return nil
	}
}

// stop asks the controller to end, and makes it.
func (h *controller) stop() error {
	if h.alive() != nil {
		return nil
	}
	if err := h.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-h.ended:
		if err != nil {
			return fmt.Errorf("the controller did not end well: %w: see %s", err, h.log)
		}
		return nil
	case <-time.After(20 * time.Second):
		return errors.Join(errors.New("the controller did not end by itself"), h.command.Process.Kill())
	}
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

// identity writes a kubeconfig with a token of the ServiceAccount into a
// directory.
func (k kubectl) identity(ctx context.Context, dir string) (path string, err error) {
	token, err := k.run(ctx, "create", "token", serviceAccount, "--namespace", namespace, "--duration", "24h")
	if err != nil {
		return "", err
	}
	text, err := k.run(ctx, "config", "view", "--raw", "--minify", "--output", "json")
	if err != nil {
		return "", err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	users, ok := config["users"].([]any)
	if !ok || len(users) != 1 {
		return "", errors.New("the kubeconfig has not one user")
	}
	user, ok := users[0].(map[string]any)
	if !ok {
		return "", errors.New("the kubeconfig's user is not an object")
	}
	user["user"] = map[string]string{"token": strings.TrimSpace(string(token))}
	if text, err = json.Marshal(config); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "kubeconfig")
	return path, os.WriteFile(path, text, 0o600)
}

// quiet is where the output of helpers goes.
func quiet(o options) io.Writer {
	if o.verbose {
		return os.Stderr
	}
	return io.Discard
}
