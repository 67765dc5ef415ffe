//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// lab is an API server, a controller with its data plane beside it, and two
// backends.
type lab struct {
	client.WithWatch
	config     *rest.Config
	env        *envtest.Environment
	dir        string // temporary
	audit      string // the API server's log of writes
	kubeconfig string // of the controller's ServiceAccount
	program    string
	version    string // of the controller
	kubernetes string // version
	gateway    string // address of its listener
	controller *controller
	backends   [2]*backend
	say        io.Writer
}

// patience is how long a state is waited for before the run is given up. It says
// nothing about how soon it comes: that is what is measured.
const patience = 2 * time.Minute

// newLab starts everything. What it writes besides goes below the directory of
// the caller's choice, which the caller removes.
func newLab(ctx context.Context, dir string, say io.Writer) (l *lab, err error) {
	l = &lab{dir: dir, audit: filepath.Join(dir, "audit.log"), say: say}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return l, err
	}
	if l.version, err = revision(ctx, repository); err != nil {
		return l, err
	}
	l.logf("building the controller")
	if l.program, err = buildController(ctx, repository, dir, l.version); err != nil {
		return l, err
	}
	host, err := hostAddress()
	if err != nil {
		return l, err
	}
	for i, name := range []string{"a", "b"} {
		if l.backends[i], err = startBackend(name, host); err != nil {
			return l, err
		}
	}
	l.logf("starting an API server")
	if err := l.startAPIServer(ctx, repository); err != nil {
		return l, err
	}
	if err := l.installController(ctx, repository); err != nil {
		return l, err
	}
	l.logf("starting the controller")
	if l.controller, err = startController(ctx, l.program, l.kubeconfig, filepath.Join(dir, "headgate.log")); err != nil {
		return l, err
	}
	return l, l.openGateway(ctx)
}

// close ends what was started.
func (l *lab) close() error {
	var all []error
	if l.controller != nil {
		all = append(all, l.controller.stop())
	}
	if l.env != nil {
		all = append(all, l.env.Stop())
	}
	for _, b := range l.backends {
		if b != nil {
			b.close()
		}
	}
	return errors.Join(all...)
}

func (l *lab) logf(format string, args ...any) {
	fmt.Fprintf(l.say, "== "+format+"\n", args...)
}

// auditPolicy has each write logged once, when it was answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// startAPIServer starts an API server with the CRDs of the Gateway API and ours, on
// the loopback. It is the machine's own: any number of them may run.
func (l *lab) startAPIServer(ctx context.Context, repository string) error {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		cache, err := binaries.OpenDefault(ctx)
		if err != nil {
			return err
		}
		assets = cache.Bin()
		if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
			return errors.New("the API server is not built; run: go run -C test/cluster . build envtest")
		}
	}
	api, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return fmt.Errorf("find the Gateway API's module: %w", err)
	}
	policy := filepath.Join(l.dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	// A machine under load is slow to start and to end it.
	l.env = &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths: []string{
			filepath.Join(strings.TrimSpace(string(api)), "config", "crd", "standard"),
			filepath.Join(repository, "config", "crd"),
		},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: 3 * time.Minute,
	}
	l.env.ControlPlane.GetAPIServer().Configure().
		Append("audit-policy-file", policy).
		Append("audit-log-path", l.audit)
	if l.config, err = l.env.Start(); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	l.config.QPS = -1
	d, err := discovery.NewDiscoveryClientForConfig(l.config)
	if err != nil {
		return err
	}
	v, err := d.ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	l.kubernetes = v.GitVersion
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	l.WithWatch, err = client.NewWithWatch(l.config, client.Options{Scheme: scheme})
	return err
}

// home is the namespace of the Gateway.
const home = "scale"

// openGateway makes the one Gateway, and waits until it listens.
func (l *lab) openGateway(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	l.gateway = net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
	if err := l.Create(ctx, newNamespace(home)); err != nil {
		return err
	}
	gw := newGateway(int32(port))
	if err := l.Create(ctx, gw); err != nil {
		return err
	}
	return l.await(ctx, func() (string, error) {
		if err := l.Get(ctx, client.ObjectKeyFromObject(gw), gw); err != nil {
			return "", err
		}
		for _, c := range gw.Status.Conditions {
			if c.Type == string(gatewayv1.GatewayConditionProgrammed) && c.Status == "True" {
				return "", nil
			}
		}
		return fmt.Sprintf("the Gateway is not programmed: %v", gw.Status.Conditions), nil
	})
}

// freePort returns a port of the loopback that nobody listens on.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// await waits until what is as it should be: it returns "" then, and else says
// why not.
func (l *lab) await(ctx context.Context, what func() (string, error)) error {
	deadline := time.Now().Add(patience)
	for {
		why, err := what()
		if why == "" || err != nil {
			return err
		}
		if err := l.controller.alive(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New(why)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// attached waits until the Gateway counts n routes.
func (l *lab) attached(ctx context.Context, n int) error {
	gw := newGateway(0)
	return l.await(ctx, func() (string, error) {
		if err := l.Get(ctx, client.ObjectKeyFromObject(gw), gw); err != nil {
			return "", err
		}
		if got := attachedRoutes(gw); got != n {
			return fmt.Sprintf("the Gateway counts %d routes, want %d", got, n), nil
		}
		return "", nil
	})
}

// remove deletes the routes and their backends in a namespace, and waits until
// they are gone from the status, too.
func (l *lab) remove(ctx context.Context, namespaces ...string) error {
	for _, ns := range namespaces {
		for _, kind := range []client.Object{new(gatewayv1.HTTPRoute), new(corev1.Service), new(discoveryv1.EndpointSlice)} {
			if err := l.DeleteAllOf(ctx, kind, client.InNamespace(ns)); err != nil {
				return fmt.Errorf("clean up %s: %w", ns, err)
			}
		}
	}
	return l.attached(ctx, 0)
}

// each runs f for 0..n-1, some at once, and returns what went wrong first.
func each(ctx context.Context, n int, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, done := make(chan int), make(chan struct{})
	const workers = 8
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range next {
				if err := f(i); err != nil {
					cancel(err)
				}
			}
		}()
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	for range workers {
		<-done
	}
	return context.Cause(ctx)
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// revision is the commit of the working tree.
func revision(ctx context.Context, repository string) (string, error) {
	c := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "describe", "--tags", "--always", "--dirty")
	c.Dir = repository
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
