package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// web is the quick start's application, as the node's clients see it.
var web = target{addr: nodeAddress + ":80", host: nodeAddress, path: "/"}

// TestInstall is one user's way, step by step: each step begins where the last
// one ended.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("a node needs root: network namespaces, mounts and containers")
	}
	dir := t.TempDir()
	backend := buildBackend(t, dir)
	images := map[string]string{}
	for _, version := range []string{versionA, versionB} {
		images[version] = buildImage(t, dir, version)
		info, err := os.Stat(images[version])
		if err != nil {
			t.Fatal(err)
		}
		if version == versionA {
			figure(t, "image archive", "%.1f MB", float64(info.Size())/1e6)
		}
	}
	// What the README names, in the places in which it says it is.
	checkout := filepath.Join(dir, "checkout")
	for _, version := range []string{versionA, versionB} {
		buildChart(t, filepath.Join(checkout, "bin", "chart"+version), version)
	}
	for name, to := range map[string]string{
		"charts":    filepath.Join(repository(t), "charts"),
		"bin/helm":  filepath.Join(repository(t), "bin", "helm"),
		"bin/chart": filepath.Join(checkout, "bin", "chart"+versionA),
	} {
		if err := os.Symlink(to, filepath.Join(checkout, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, checkout, backend)
	for _, step := range []struct {
		name string
		run  func(*world, *testing.T)
	}{
		{"image", func(w *world, t *testing.T) { w.importImages(t, images) }},
		{"quick start", (*world).quickStart},
		{"documented status", (*world).documentedStatus},
		{"upgrade under load", (*world).upgrade},
		{"killed", (*world).killed},
		{"API server away", (*world).apiServerAway},
		{"port conflict", (*world).portConflict},
		{"1,000 routes", (*world).manyRoutes},
		{"uninstall", (*world).uninstall},
	} {
		good := t.Run(step.name, func(t *testing.T) {
			defer w.explain(t)
			step.run(w, t)
		})
		if !good {
			t.Fatalf("what follows needs %q", step.name)
		}
	}
}

// importImages gives the images to the node as image.md says: with ctr.
func (w *world) importImages(t *testing.T, images map[string]string) {
	for _, archive := range images {
		f, err := os.Open(archive)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := w.LoadImage(t.Context(), f, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	// As k3s does before anybody installs anything.
	if err := w.ApplyCRDs(t.Context(), "gateway-api-standard", io.Discard); err != nil {
		t.Fatal(err)
	}
}

// quickStart does what the README says, word by word. The node is up already,
// has the image, and stands for k3s's.
func (w *world) quickStart(t *testing.T) {
	readme, err := os.Open(filepath.Join(repository(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer readme.Close()
	blocks, err := quickStart(readme, "k3s")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w.run(t, blocks["install"])
	figure(t, "helm install to the rollout's end", "%.1f s", time.Since(start).Seconds())
	out := w.run(t, blocks["try"])
	figure(t, "helm install to the first 200", "%.1f s", time.Since(start).Seconds())
	if !strings.Contains(out, "HTTP/1.1 200 OK") {
		t.Errorf("the request of the quick start got\n%s", out)
	}
	pod := w.pod(t)
	started := w.field(t, "pod -n "+namespace+" "+pod, `{.status.containerStatuses[0].state.running.startedAt}`)
	ready := w.field(t, "pod -n "+namespace+" "+pod, `{.status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	from, err := time.Parse(time.RFC3339, started)
	if err != nil {
		t.Fatal(err)
	}
	to, err := time.Parse(time.RFC3339, ready)
	if err != nil {
		t.Fatal(err)
	}
	figure(t, "container start to pod ready", "%.0f s (in whole seconds)", to.Sub(from).Seconds())
	figure(t, "resident memory with one route", "%.1f MB", float64(resident(t, w.process(t, pod)))/1024)
}

// documentedStatus checks that the objects say what the documents print.
func (w *world) documentedStatus(t *testing.T) {
	for _, c := range []struct{ object, path, want string }{
		{"gatewayclass headgate", condition("Accepted"), `^True Accepted: `},
		{"gatewayclass headgate", condition("SupportedVersion"), `^True SupportedVersion: `},
		{"gateway web", condition("Accepted"), `^True Accepted: `},
		{"gateway web", condition("Programmed"), `^True Programmed: `},
		{"gateway web", `{.status.addresses[*].value}`, `^` + regexp.QuoteMeta(nodeAddress) + `$`},
		{"gateway web", `{.status.listeners[0].attachedRoutes}`, `^1$`},
		{"gateway web", `{range .status.listeners[0].conditions[*]}{.type}={.status} {end}`, `^(\w+=(True|False) ?)+$`},
		{"httproute web", `{range .status.parents[0].conditions[?(@.type=="Accepted")]}{.status} {.reason}{end}`, `^True Accepted$`},
		{"httproute web", `{range .status.parents[0].conditions[?(@.type=="ResolvedRefs")]}{.status} {.reason}{end}`, `^True ResolvedRefs$`},
		{"httproute web", `{.status.parents[0].controllerName}`, `^headgate\.dev/gateway-controller$`},
	} {
		if got := w.field(t, c.object, c.path); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s %s: %q, want %s", c.object, c.path, got, c.want)
		}
	}
	table := strings.Split(strings.TrimSpace(w.run(t, "kubectl get gateway web")), "\n")
	if len(table) != 2 || !regexp.MustCompile(`^web +headgate +`+regexp.QuoteMeta(nodeAddress)+` +True +`).MatchString(table[1]) {
		t.Errorf("kubectl get gateway prints\n%s", strings.Join(table, "\n"))
	}
	row := regexp.MustCompile(`(?m)^NAME +VERSION +SNAPSHOT +APPLIED +CONNECTIONS +BUSY % +FAULTS +TROUBLED +STARTED *\n\S+ +` +
		regexp.QuoteMeta(versionA) + ` +[0-9a-f]{16} +\S+ +\d+ +\d+ +0 +0 +\S+`)
	w.until(t, 30*time.Second, "kubectl get dataplanes", row.MatchString)
}

// drain is the chart's default drain period, in which nothing is dropped.
const drain = 30 * time.Second

// upgrade goes to another tag under load.
func (w *world) upgrade(t *testing.T) {
	before := w.pod(t)
	l := newLoad(web, 8, 8, 20)
	time.Sleep(2 * time.Second)
	start := time.Now()
	w.run(t, fmt.Sprintf("bin/helm upgrade headgate bin/chart%s/headgate-*.tgz --namespace %s --reset-then-reuse-values", versionB, namespace))
	// The old pod is told to end when the new one is ready.
	w.until(t, 2*time.Minute, "kubectl get pod -n "+namespace+" "+before+" -o jsonpath='{.metadata.deletionTimestamp}'", func(out string) bool { return out != "" })
	figure(t, "helm upgrade to the new pod ready", "%.1f s", time.Since(start).Seconds())
	time.Sleep(drain - 10*time.Second)
	requests, failures := l.end()
	figure(t, "requests and WebSocket messages during the upgrade", "%d, failed %d", requests, len(failures))
	w.wantNone(t, failures)
	ended := w.until(t, time.Minute, "kubectl get pods -n "+namespace+" -o name", func(out string) bool { return !strings.Contains(out, before) })
	figure(t, "the old pod's end after its last client had gone", "%.1f s", ended.Seconds())
	w.run(t, "kubectl --namespace "+namespace+" rollout status daemonset/headgate --timeout=3m")
	if got := w.field(t, "pod -n "+namespace+" "+w.pod(t), `{.spec.containers[0].image}`); !strings.HasSuffix(got, ":"+versionB) {
		t.Errorf("the pod runs %s", got)
	}
}

// wantNone fails the test for each failure, up to a number that can be read.
func (w *world) wantNone(t *testing.T, failures []failure) {
	t.Helper()
	for i, f := range failures {
		if i == 20 {
			t.Errorf("and %d more", len(failures)-i)
			return
		}
		t.Error(f)
	}
}

// killed kills the gateway with SIGKILL: the kubelet starts it again.
func (w *world) killed(t *testing.T) {
	pod := w.pod(t)
	l := newLoad(web, 0, 4, 0)
	time.Sleep(time.Second)
	if err := syscall.Kill(w.process(t, pod), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	w.until(t, time.Minute, "kubectl get pod -n "+namespace+" "+pod+` -o jsonpath='{.status.containerStatuses[0].restartCount}'`, func(out string) bool { return out == "1" })
	if err := web.until(within(t, time.Minute), 200); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	requests, failures := l.end()
	last := died
	for _, f := range failures {
		if f.at.After(last) {
			last = f.at
		}
	}
	figure(t, "killed by SIGKILL: until the last failure", "%.2f s (%d requests answered, %d failed)", last.Sub(died).Seconds(), requests, len(failures))
	w.run(t, "kubectl wait --for=condition=Ready -n "+namespace+" --timeout=1m pod/"+pod)
}

// outage is how long the API server is away.
const outage = time.Minute

// apiServerAway stops the API server: traffic goes on, and what changed is taken
// when it is back.
func (w *world) apiServerAway(t *testing.T) {
	l := newLoad(web, 4, 4, 4)
	if _, err := w.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage)
	during := l.answered()
	if _, err := w.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(t, `kubectl patch httproute web --type=json -p '[{"op":"add","path":"/spec/rules/0/matches","value":[{"path":{"type":"PathPrefix","value":"/"}},{"path":{"type":"Exact","value":"/back"}}]}]'`)
	took := w.until(t, 2*time.Minute, `kubectl get httproute web -o jsonpath='{.metadata.generation} {.status.parents[0].conditions[0].observedGeneration}'`, func(out string) bool {
		a, b, _ := strings.Cut(out, " ")
		return a != "" && a == b
	})
	figure(t, "API server back to a change in the status", "%.1f s", took.Seconds())
	requests, failures := l.end()
	figure(t, "API server away for a minute", "%d requests answered meanwhile, %d in all, failed %d", during, requests, len(failures))
	w.wantNone(t, failures)
	restarts := w.field(t, "pod -n "+namespace+" "+w.pod(t), `{.status.containerStatuses[0].restartCount}`)
	if restarts != "1" { // of the step before
		t.Errorf("%s restarts, want 1", restarts)
	}
}

// portConflict lets somebody else listen on port 80.
func (w *world) portConflict(t *testing.T) {
	manifest := w.run(t, `kubectl get gateway web -o jsonpath='{.spec}'`)
	w.run(t, "kubectl delete gateway web --wait")
	if err := web.untilGone(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	release := w.hold(t, 80)
	w.run(t, fmt.Sprintf(`kubectl apply -f - <<'EOF'
{"apiVersion":"gateway.networking.k8s.io/v1","kind":"Gateway","metadata":{"name":"web"},"spec":%s}
EOF`, manifest))
	listener := `{range .status.listeners[0].conditions[?(@.type=="Programmed")]}{.status} {.reason}: {.message}{end}`
	read := "kubectl get gateway web -o jsonpath='" + listener + "'"
	w.until(t, 20*time.Second, read, func(out string) bool { return strings.HasPrefix(out, "False PortUnavailable: ") })
	if said := w.run(t, read); !strings.Contains(said, "80") || !strings.Contains(said, "ss -ltnp") {
		t.Errorf("the status of the listener does not say what to do: %s", said)
	} else {
		t.Log(said)
	}
	release()
	freed := time.Now()
	w.until(t, 30*time.Second, read, func(out string) bool { return strings.HasPrefix(out, "True Programmed") })
	figure(t, "port 80 freed to Programmed", "%.1f s", time.Since(freed).Seconds())
	if err := web.until(within(t, 10*time.Second), 200); err != nil {
		t.Fatal(err)
	}
	if restarts := w.field(t, "pod -n "+namespace+" "+w.pod(t), `{.status.containerStatuses[0].restartCount}`); restarts != "1" {
		t.Errorf("%s restarts, want 1", restarts)
	}
}

// manyRoutes attaches 1,000 routes.
func (w *world) manyRoutes(t *testing.T) {
	const routes = 1000
	var manifest strings.Builder
	for i := range routes {
		fmt.Fprintf(&manifest, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r%[1]d}
spec:
  parentRefs: [{name: web}]
  hostnames: [h%[1]d.example.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`, i)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "routes.yaml"), []byte(manifest.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	w.run(t, "kubectl create -f routes.yaml")
	w.until(t, 2*time.Minute, "kubectl get gateway web -o jsonpath='{.status.listeners[0].attachedRoutes}'", func(out string) bool { return out == fmt.Sprint(routes+1) })
	last := web
	last.host = fmt.Sprintf("h%d.example.com", routes-1)
	if err := last.until(within(t, 10*time.Second), 200); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	figure(t, "resident memory with 1,001 routes", "%.1f MB", float64(resident(t, w.process(t, w.pod(t))))/1024)
}

// uninstall removes the release: what is left is what install.md says.
func (w *world) uninstall(t *testing.T) {
	w.run(t, "bin/helm uninstall headgate --namespace "+namespace+" --wait")
	left := w.run(t, `kubectl get all,configmaps,secrets,serviceaccounts,roles,rolebindings,leases -n `+namespace+` -o name | grep -v -e configmap/kube-root-ca.crt -e serviceaccount/default || true
kubectl get clusterroles,clusterrolebindings,gatewayclasses -o name | grep headgate || true`)
	var unknown []string
	for line := range strings.Lines(left) {
		line = strings.TrimSpace(line)
		draining := strings.HasPrefix(line, "pod/headgate-")
		if line != "" && line != "lease.coordination.k8s.io/headgate-leader" && !draining {
			unknown = append(unknown, line)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("left behind: %q", unknown)
	}
	w.until(t, time.Minute, "kubectl get pods -n "+namespace+" -o name", func(out string) bool { return strings.TrimSpace(out) == "" })
	if err := web.untilGone(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	if got := w.run(t, "kubectl get crds -l app.kubernetes.io/name=headgate -o name"); !strings.Contains(got, "headgate.dev") {
		t.Errorf("the policies' CRDs are gone, and every policy with them: %q", got)
	}
	if got := w.run(t, "kubectl get gateways,httproutes -o name | wc -l"); strings.TrimSpace(got) != "1002" {
		t.Errorf("%s Gateways and routes are left of 1002", strings.TrimSpace(got))
	}
}

// within returns a context of the test that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
