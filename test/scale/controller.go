//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Whom config/rbac gives the rights.
const (
	namespace      = "headgate-system"
	serviceAccount = "headgate"
	user           = "system:serviceaccount:" + namespace + ":" + serviceAccount
)

// buildController builds the program as `make build` does.
func buildController(ctx context.Context, repository, dir, version string) (string, error) {
	program := filepath.Join(dir, "headgate")
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+version, "-o", program, "./cmd/headgate")
	c.Dir = repository
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the controller: %w\n%s", err, out)
	}
	return program, nil
}

// installController applies the rights and the GatewayClass, and writes a
// kubeconfig with a token of the ServiceAccount.
func (l *lab) installController(ctx context.Context, repository string) error {
	files, err := filepath.Glob(filepath.Join(repository, "config", "rbac", "*.yaml"))
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b string) int { // namespaces first
		return strings.Compare(strings.Replace(a, "namespace", "0", 1), strings.Replace(b, "namespace", "0", 1))
	})
	for _, file := range append(files, filepath.Join(repository, "config", "manager", "gatewayclass.yaml")) {
		if err := l.apply(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	if err := l.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("get a token for the controller: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: l.config.Host, CertificateAuthorityData: l.config.CAData}
	config.AuthInfos["headgate"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "headgate"}
	config.CurrentContext = "lab"
	l.kubeconfig = filepath.Join(l.dir, "kubeconfig")
	return clientcmd.WriteToFile(*config, l.kubeconfig)
}

// apply creates the objects of a file.
func (l *lab) apply(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		if err := docs.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.GetKind() == "Kustomization" {
			continue
		}
		if err := l.Create(ctx, &o); err != nil {
			return err
		}
	}
}

// controller is a running `headgate controller`.
type controller struct {
	command *exec.Cmd
	log     string
	admin   string // base URL
	ended   chan error
}

// startController returns when the controller serves what the cluster says.
func startController(ctx context.Context, program, kubeconfig, log string) (*controller, error) {
	c := &controller{log: log, ended: make(chan error, 1)}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c.command = exec.Command(program, "controller", "--kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--node-address", "127.0.0.1", "--leader-election-namespace", namespace,
		"--access-log", "off", "--admin-address", "127.0.0.1:0", "--drain-timeout", "5s", "--log-format", "json")
	c.command.Stdout, c.command.Stderr = out, out
	// The lab's end is its end.
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	go func() { c.ended <- c.command.Wait() }()
	deadline := time.Now().Add(patience)
	for !c.ready() {
		if err := c.alive(); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("the controller is not ready: see %s", c.log), c.stop())
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, nil
}

// ready tells whether the admin server says so. Its address is in the log.
func (c *controller) ready() bool {
	if c.admin == "" {
		text, err := os.ReadFile(c.log)
		if err != nil {
			return false
		}
		for line := range bytes.Lines(text) {
			var l struct{ Msg, Address string }
			if json.Unmarshal(line, &l) == nil && l.Msg == "admin listening" {
				c.admin = "http://" + l.Address
			}
		}
	}
	if c.admin == "" {
		return false
	}
	_, err := c.get("/readyz")
	return err == nil
}

// get asks the admin server.
func (c *controller) get(path string) ([]byte, error) {
	client := http.Client{Timeout: time.Minute}
	res, err := client.Get(c.admin + path)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return text, err
}

// alive returns an error when the controller has ended.
func (c *controller) alive() error {
	select {
	case err := <-c.ended:
		c.ended <- err
		text, _ := os.ReadFile(c.log) // what it said last, if it did
		return fmt.Errorf("the controller ended: %v:\n%s", err, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// stop asks the controller to end, and makes it.
func (c *controller) stop() error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-c.ended:
		c.ended <- err
		if err != nil {
			return fmt.Errorf("the controller did not end well: %w: see %s", err, c.log)
		}
		return nil
	case <-time.After(time.Minute):
		err := c.command.Process.Kill()
		c.ended <- <-c.ended
		return errors.Join(fmt.Errorf("the controller did not end by itself: see %s", c.log), err)
	}
}
