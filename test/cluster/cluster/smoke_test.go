//go:build smoke

package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// The tests of this file start real clusters:
//
//	go test -tags smoke -run Smoke ./cluster
//
// as root, with the programs built and no other cluster up. They take about
// half a minute.

// snapshot returns what a cluster may not change on the machine.
func snapshot(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		all.WriteString("link " + link.Name + "\n")
	}
	routes, err := exec.Command("ip", "route").Output()
	if err != nil {
		t.Fatal(err)
	}
	all.Write(routes)
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		all.WriteString("mount " + m.point + "\n")
	}
	for _, hierarchy := range hierarchies(mounts) {
		dirs, err := filepath.Glob(hierarchy + "/" + cgroupName + "*")
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.Join(dirs, "\n"))
	}
	for _, name := range append([]string{"net/ipv4/ip_forward"}, sysctlNames()...) {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(name + " " + string(value))
	}
	for _, place := range privatePlaces {
		if exists(place) {
			all.WriteString("place " + place + "\n")
		}
	}
	return all.String()
}

func sysctlNames() []string {
	var names []string
	for _, s := range sysctls {
		names = append(names, s.name)
	}
	return names
}

// checkEnded checks that nothing of the state directory is left but its logs.
func checkEnded(t *testing.T, dir, before string) {
	t.Helper()
	if diff := cmp.Diff(before, snapshot(t)); diff != "" {
		t.Errorf("the machine (-before +after):\n%s", diff)
	}
	if left, err := marked(dir); len(left) > 0 || err != nil {
		t.Errorf("processes left: %+v, %v", left, err)
	}
	for _, name := range []string{"cluster.json", "run", "kubeconfig"} {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s is left", name)
		}
	}
	if !exists(filepath.Join(dir, "log", "etcd.log")) {
		t.Error("the logs are gone")
	}
}

func smokeOptions(t *testing.T, mode Mode) Options {
	t.Helper()
	cache, err := binaries.OpenDefault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	t.Cleanup(func() { t.Logf("progress:\n%s", progress.String()) })
	return Options{Mode: mode, Dir: filepath.Join(t.TempDir(), "state"), Binaries: cache.Dir(), Output: &progress}
}

func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// checkAPIServer stops and starts the API server.
func checkAPIServer(t *testing.T, c *Cluster) {
	t.Helper()
	api, err := newAPIClient(c.layout, c.Mode())
	if err != nil {
		t.Fatal(err)
	}
	defer api.close()
	if stopped, err := c.StopAPIServer(); !stopped || err != nil {
		t.Fatalf("stop: %v, %v", stopped, err)
	}
	if err := api.ready(t.Context()); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	for _, p := range c.Processes() {
		if p.Alive != (p.Name != nameAPIServer) {
			t.Errorf("with the API server stopped: %+v", p)
		}
	}
	if started, err := c.StartAPIServer(t.Context()); !started || err != nil {
		t.Fatalf("start: %v, %v", started, err)
	}
	if err := api.ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSmokeControlPlane(t *testing.T) {
	before := snapshot(t)
	o := smokeOptions(t, ControlPlane)
	c := start(t, o)
	second := smokeOptions(t, ControlPlane)
	held := new(HeldError)
	if _, err := Up(t.Context(), second); !errors.As(err, &held) || held.Holder.Dir != c.Dir() || held.Holder.PID != c.Processes()[0].PID {
		t.Errorf("a second cluster: %v", err)
	}
	began := time.Now()
	if err := c.ApplyCRDs(t.Context(), "gateway-api-standard", o.Output); err != nil {
		t.Error(err)
	}
	log, err := os.Open(c.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := ReadAudit(log, began)
	if err != nil {
		t.Error(err)
	}
	written := 0
	for _, e := range events {
		if e.Resource == "customresourcedefinitions" && e.User == "headgate-test-admin" && e.Verb == "patch" {
			written++
		}
	}
	if written < 10 {
		t.Errorf("the audit log has %d CRDs", written)
	}
	checkAPIServer(t, c)
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	checkEnded(t, c.Dir(), before)
}

func TestSmokeNode(t *testing.T) {
	before := snapshot(t)
	o := smokeOptions(t, Node)
	o.Addresses = []netip.Prefix{netip.MustParsePrefix("10.90.0.64/26")}
	c := start(t, o)
	checkPod(t, c)
	checkReach(t, c)
	var name strings.Builder
	hostname := exec.Command("hostname")
	hostname.Stdout = &name
	if err := c.Start(hostname); err != nil {
		t.Fatal(err)
	}
	if err := hostname.Wait(); err != nil || name.String() != NodeName+"\n" {
		t.Errorf("host name %q, %v", name.String(), err)
	}
	checkAPIServer(t, c)

	// A crash of everything, and a cluster after it without a down between.
	for _, p := range c.state.Processes {
		if err := p.kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := awaitEnd(c.state.Processes, endTimeout); err != nil {
		t.Fatal(err)
	}
	c = start(t, o)
	checkPod(t, c)
	if err := c.Down(); err != nil {
		t.Fatal(err)
	}
	checkEnded(t, c.Dir(), before)
}

// checkPod runs a pod until it is ready.
func checkPod(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"run", "pause", "--image=" + binaries.PauseImage},
		{"wait", "--for=condition=Ready", "pod/pause", "--timeout=60s"},
	} {
		var out bytes.Buffer
		if err := c.kubectl(ctx, &out, args...); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
}

// checkReach asks the API server by a Service's address and by one of the
// node's further addresses, as a test on the machine would.
func checkReach(t *testing.T, c *Cluster) {
	t.Helper()
	for _, address := range []string{"10.96.0.1:443", "10.90.0.127:16443"} {
		connection, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		connection.Close()
	}
	addresses, err := c.RemoveAddresses(netip.MustParsePrefix("10.90.0.64/27"))
	if err != nil || len(addresses) != 32 {
		t.Errorf("removed %d addresses, %v", len(addresses), err)
	}
	if addresses, err := c.Addresses(); err != nil || len(addresses) != 33 || addresses[0].String() != nodeAddress {
		t.Errorf("addresses left: %v, %v", addresses, err)
	}
}
