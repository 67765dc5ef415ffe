package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// gatewayAPI is the module that has the Gateway API's CRDs.
const gatewayAPI = "sigs.k8s.io/gateway-api@v1.6.3"

// crdSets are CRDs by name: directories of the module gatewayAPI.
var crdSets = map[string]string{
	"gateway-api-standard":     "config/crd",
	"gateway-api-experimental": "config/crd/experimental",
}

// ApplyCRDs applies CRDs, server-side, and waits until the API server serves
// them. source is gateway-api-standard or gateway-api-experimental, or a
// directory (a kustomization or plain files) or a file.
func (c *Cluster) ApplyCRDs(ctx context.Context, source string, output io.Writer) error {
	path, err := findCRDs(ctx, source)
	if err != nil {
		return err
	}
	apply := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=headgate-test"}
	if isKustomization(path) {
		apply = append(apply, "--kustomize", path)
	} else {
		apply = append(apply, "--filename", path)
	}
	for _, args := range [][]string{
		apply,
		{"wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"},
	} {
		if err := c.kubectl(ctx, output, args...); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl as the administrator.
func (c *Cluster) kubectl(ctx context.Context, output io.Writer, args ...string) error {
	flags := []string{"--kubeconfig", c.Kubeconfig(), "--cache-dir", c.layout.run("kubectl")} // not in the user's home
	command := exec.CommandContext(ctx, filepath.Join(c.Bin(), "kubectl"), append(flags, args...)...)
	command.Stdout = output
	command.Stderr = output
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

func findCRDs(ctx context.Context, source string) (string, error) {
	dir, ok := crdSets[source]
	if !ok {
		if _, err := os.Stat(source); err != nil {
			return "", fmt.Errorf("CRDs are gateway-api-standard, gateway-api-experimental, a directory or a file: %w", err)
		}
		return source, nil
	}
	// It needs no network if the module is in the cache.
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", gatewayAPI)
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Dir = os.TempDir() // whatever module the caller is in
	out, err := command.Output()
	var module struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &module); decodeErr != nil || module.Error != "" || err != nil {
		return "", fmt.Errorf("get the module %s: %v %s", gatewayAPI, err, module.Error)
	}
	return filepath.Join(module.Dir, dir), nil
}

func isKustomization(path string) bool {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if exists(filepath.Join(path, name)) {
			return true
		}
	}
	return false
}
