package chart

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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// server is an API server, and how helm reaches it.
type server struct {
	client.Client
	env        *envtest.Environment
	kubeconfig string
}

// startServer starts an API server that a test has for itself.
func startServer(t *testing.T) *server {
	t.Helper()
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		cache, err := binaries.OpenDefault(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(cache.Bin(), "kube-apiserver")); err != nil {
			t.Fatal("the API server is not built; run: go run -C test/cluster . build envtest")
		}
		t.Setenv("KUBEBUILDER_ASSETS", cache.Bin())
	}
	// A machine under load is slow to start and to end it.
	s := &server{env: &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: 3 * time.Minute}}
	config, err := s.env.Start()
	if err != nil {
		t.Fatal("start the API server: ", err)
	}
	t.Cleanup(func() {
		if err := s.env.Stop(); err != nil {
			t.Error("stop the API server: ", err)
		}
	})
	config.QPS = -1
	if s.Client, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(s.kubeconfig, s.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// installCRDs installs the CRDs of the Gateway API.
func (s *server) installCRDs(t *testing.T) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal("find the Gateway API's module: ", err)
	}
	if _, err := envtest.InstallCRDs(s.env.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard")}, ErrorIfPathMissing: true,
	}); err != nil {
		t.Fatal(err)
	}
}

// namespace makes a namespace that enforces a level of pod security.
func (s *server) namespace(t *testing.T, name, level string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if level != "" {
		ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": level}
	}
	if err := s.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}

// helm runs helm against the server.
func (s *server) helm(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, complaint, err := helm(ctx, append(args, "--kubeconfig", s.kubeconfig)...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, complaint)
	}
	return out
}

// eventually waits until what is as it should be; it returns "" then, and else
// says why not.
func eventually(t *testing.T, what func() string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		why := what()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(why)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// exists tells whether an object is there; "" when it is as wanted.
func (s *server) exists(t *testing.T, o client.Object, want bool) string {
	t.Helper()
	err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if got := err == nil; got != want {
		return fmt.Sprintf("%T %s exists: %v, want %v", o, o.GetName(), got, want)
	}
	return ""
}
