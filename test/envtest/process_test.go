package envtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// process builds headgate and runs it as the controller of the world, on the
// loopback address. It says what it serves in a DataPlane of the world's name.
func (w *world) process(args ...string) {
	w.Helper()
	dir := w.TempDir()
	binary, config := filepath.Join(dir, "headgate"), filepath.Join(dir, "kubeconfig")
	build := exec.Command("go", "build", "-o", binary, "./cmd/headgate")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("build headgate: %v\n%s", err, out)
	}
	if err := os.WriteFile(config, server.kubeconfig, 0o600); err != nil {
		w.Fatal(err)
	}
	var log bytes.Buffer
	c := exec.Command(binary, append([]string{
		"controller", "--kubeconfig", config, "--controller-name", string(w.controller), "--leader-elect=false", "--data-plane-name", w.name,
		"--bind-address", "127.0.0.1", "--node-address", "192.0.2.1", "--admin-address", "", "--access-log", "off", "--workers", "2", "--drain-period", "1s",
	}, args...)...)
	c.Stdout, c.Stderr = &log, &log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			w.Error(err)
		}
		timer := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() }) // it may have ended just now
		defer timer.Stop()
		if err := c.Wait(); err != nil || w.Failed() {
			w.Errorf("headgate ended with %v; its log:\n%s", err, log.String())
		}
	})
}

// cells are what kubectl get prints of one object of a kind, by column.
func (w *world) cells(resource, namespace, name string) map[string]string {
	w.Helper()
	set, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.Fatal(err)
	}
	q := set.Discovery().RESTClient().Get().AbsPath("/apis/" + v1alpha1.GroupVersion.String())
	if namespace != "" {
		q = q.Namespace(namespace)
	}
	raw, err := q.Resource(resource).Name(name).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil || len(table.Rows) != 1 {
		w.Fatalf("%d rows, %v: %s", len(table.Rows), err, raw)
	}
	out := make(map[string]string)
	for i, c := range table.ColumnDefinitions {
		if v := table.Rows[0].Cells[i]; v != nil {
			out[c.Name] = fmt.Sprint(v)
		}
	}
	return out
}

// long waits for what two writers tell, one after the other, each every 10 s at
// most.
func (w *world) long(what func() string) {
	w.Helper()
	why := "nothing was asked"
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if why = what(); why == "" {
			return
		}
	}
	w.Fatal(why)
}

// message is what a condition of a route's parent says.
func (w *world) message(hr *gatewayv1.HTTPRoute, kind string) string {
	w.Helper()
	w.refresh(hr)
	for _, p := range hr.Status.Parents {
		for _, c := range p.Conditions {
			if c.Type == kind {
				return c.Message
			}
		}
	}
	return ""
}

// A whole headgate under load tells in numbers what is wrong with two backends: one
// has a pool that is too small for how slow it is, of the other one an endpoint
// breaks off.
func TestTroubleUnderLoad(t *testing.T) {
	w := newWorld(t)
	const slow = 300 * time.Millisecond
	web := backendServer(t, func(http.ResponseWriter, *http.Request) { time.Sleep(slow) })
	api := backendServer(t, func(http.ResponseWriter, *http.Request) {})
	broken := backendServer(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.process("--adaptive-timeout", "off")
	w.class()
	port := freePort(t)
	w.gateway("gw", func(gw *gatewayv1.Gateway) { gw.Spec.Listeners[0].Port = gatewayv1.PortNumber(port) })
	w.backend("web")
	w.endpoints("web", web)
	w.backend("api")
	w.endpoints("api", api)
	w.slice("api-broken", "api", netip.MustParseAddrPort(broken.Listener.Addr().String()))
	size, waiting, enforce := int32(2), int32(0), v1alpha1.ModeEnforce
	policy := w.policy("web", "web", func(p *v1alpha1.BackendPolicy) {
		p.Spec.Pool = &v1alpha1.Pool{Size: &size, Waiting: &waiting}
		p.Spec.AdaptiveTimeout = &v1alpha1.AdaptiveTimeout{Mode: &enforce}
	})
	routes := map[string]*gatewayv1.HTTPRoute{"web": w.route("web", to("web", 80)), "api": w.route("api", to("api", 80))}
	w.long(func() string {
		w.refresh(policy)
		if len(policy.Status.Ancestors) == 0 || policy.Status.State != v1alpha1.PressureCalm {
			return fmt.Sprintf("before the load the policy says %+v", policy.Status)
		}
		return ""
	})
	if got := w.cells("backendpolicies", w.name, "web"); got["State"] != "Calm" || got["Accepted"] != "True" || got["Since"] != "" || got["Busiest"] != "" {
		t.Errorf("before the load kubectl prints %v", got)
	}

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for i := range 8 {
		host := []string{"web", "api"}[i/6] + ".example.com" // six and two
		c := newCaller(t, port, host)
		clients.Go(func() {
			for ctx.Err() == nil {
				if code, err := c.get("/"); err != nil || code != 200 {
					time.Sleep(20 * time.Millisecond) // refused, shed, or not there yet
				}
			}
		})
	}

	pressure := regexp.MustCompile(`^cluster ` + w.name + `/web:80 on ` + w.name + `: \d of 2 connections busy since \d\d:\d\d:\d\d, ([1-9]\d*) % of requests shed; ` +
		`raise pool\.size in a BackendPolicy if the backend can do more at once, else add endpoints or fix p99 = ([1-9]\d*) ms$`)
	w.long(func() string {
		if got := w.message(routes["web"], "headgate.dev/Pressure"); !pressure.MatchString(got) {
			return fmt.Sprintf("the route says %q", got)
		}
		return ""
	})
	address := regexp.QuoteMeta(broken.Listener.Addr().String())
	health := regexp.MustCompile(`^1 of 2 endpoints of ` + w.name + `/api:80 is out on ` + w.name + `: ` + address +
		` \((5 failed requests in a row, the last one|ejected \d+ times in a row, each time it failed again): it closed the connection without an answer; ` +
		`back at \d\d:\d\d:\d\d\); see the logs of those backends$`)
	w.long(func() string {
		if got := w.message(routes["api"], "headgate.dev/BackendsHealthy"); !health.MatchString(got) {
			return fmt.Sprintf("the route says %q", got)
		}
		return ""
	})
	w.long(func() string {
		w.refresh(policy)
		if s := policy.Status; s.State != v1alpha1.PressureShedding || s.Since == nil || !strings.Contains(s.Busiest, " % shed, p99 ") {
			return fmt.Sprintf("the policy says %+v", s)
		}
		return ""
	})
	w.long(func() string {
		p := w.dataPlane(w.name)
		for _, c := range p.Status.Clusters {
			// A bucket's middle may be an eighth below what was counted there.
			if c.Name == w.name+"/web:80" && c.ShedPercent > 0 && c.P99Millis >= slow.Milliseconds()*7/8-5 && c.P50Millis > 0 && c.RequestsPerSecond > 0 &&
				c.DeadlineMillis > 0 && c.EstimateMillis > 0 { // the policy's mode wins over the flag
				return ""
			}
		}
		return fmt.Sprintf("the DataPlane says %+v", p.Status.Clusters)
	})
	for what, got := range map[string]map[string]string{
		"State Since Busiest Pool": w.cells("backendpolicies", w.name, "web"), "Troubled Worst Connections Busy %": w.cells("dataplanes", "", w.name),
	} {
		for _, column := range strings.Split(strings.ReplaceAll(what, "Busy %", "Busy_%"), " ") {
			if v := got[strings.ReplaceAll(column, "_", " ")]; v == "" || v == "Calm" {
				t.Errorf("the column %s is %q: %v", column, v, got)
			}
		}
		t.Logf("kubectl prints %v", got)
	}
	t.Logf("the routes say\n%s\n%s", w.message(routes["web"], "headgate.dev/Pressure"), w.message(routes["api"], "headgate.dev/BackendsHealthy"))
}
