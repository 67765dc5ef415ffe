package envtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// shared is the API server that most tests share: each has a GatewayClass and
// namespaces of its own.
type shared struct {
	config     *rest.Config
	kubeconfig []byte
	crds       string // directory
}

var server shared

// ourCRDs is the directory of Headgate's own.
const ourCRDs = "../../config/crd"

func TestMain(m *testing.M) {
	if os.Getenv(holdPortEnv) != "" {
		os.Exit(holdPortMain())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	env, err := environment(true)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if server.config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)
		return 1
	}
	server.config.QPS = -1
	server.kubeconfig = env.KubeConfig
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

// environment returns an API server that is not started yet, with the CRDs or
// without.
func environment(crds bool) (*envtest.Environment, error) {
	ctx := context.Background()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		cache, err := binaries.OpenDefault(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(cache.Bin(), "kube-apiserver")); err != nil {
			return nil, fmt.Errorf("the API server is not built; run: go run -C test/cluster . build envtest")
		}
		if err := os.Setenv("KUBEBUILDER_ASSETS", cache.Bin()); err != nil {
			return nil, err
		}
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Gateway API's module: %w", err)
	}
	server.crds = filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard")
	// A machine under load is slow to start and to end it.
	env := &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: 3 * time.Minute}
	if crds {
		env.CRDDirectoryPaths = []string{server.crds, ourCRDs}
		env.ErrorIfCRDPathMissing = true
	}
	return env, nil
}
