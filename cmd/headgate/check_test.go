package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controllers/compile"
)

// checkDir runs check on a directory with one file.
func checkDir(t *testing.T, text string, f checkFlags) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if f.output == "" {
		f.output = "text"
	}
	err := check(&out, dir, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), &f)
	return strings.ReplaceAll(out.String(), dir+"/", ""), err
}

const checkFrame = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: headgate
  listeners:
  - {name: http, port: 80, protocol: HTTP}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules:
  - backendRefs: [{name: web, port: 80}]
`

// A policy is checked as the CRD and the controller would.
func TestCheckPolicy(t *testing.T) {
	const policy = checkFrame + `---
apiVersion: headgate.dev/v1alpha1
kind: BackendPolicy
metadata: {name: web}
spec:
  targetRefs:
  - {group: "", kind: Service, name: web}
  - {group: "", kind: Service, name: gone}
  pool: {size: SIZE}
`
	out, err := checkDir(t, strings.Replace(policy, "SIZE", "50", 1), checkFlags{})
	for _, want := range []string{
		"a.yaml:40: BackendPolicy default/web: spec.targetRefs[1]: Service default/gone does not exist\n",
		"BackendPolicy default/web:\n  Service web: Accepted=True\n  Service gone: Accepted=False (TargetNotFound)\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it says\n%s and not\n%s", out, want)
		}
	}
	if !errors.Is(err, errProblems) {
		t.Errorf("error %v", err)
	}
	out, _ = checkDir(t, strings.Replace(policy, "SIZE", "0", 1), checkFlags{})
	if want := "a.yaml:41: BackendPolicy default/web: spec.pool.size: Invalid value: 0: must be between 1 and 1000000\n"; !strings.Contains(out, want) {
		t.Errorf("it says\n%s and not\n%s", out, want)
	}
}

func TestCheckText(t *testing.T) {
	const clean = `GatewayClass headgate: Accepted=True SupportedVersion=True
Gateway default/edge: Accepted=True ResolvedRefs=True
  listener http: Accepted=True ResolvedRefs=True, 1 route
HTTPRoute default/web: Accepted=True ResolvedRefs=True
0 errors, 0 warnings
`
	const more = checkFrame + `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bad}
spec:
  parentRefs:
  - {name: edge, sectionName: http}
  - {name: edge, sectionName: https}
  rules:
  - backendRefs:
    - name: web
      port: 81
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
a: [
`
	const problems = `a.yaml:40: HTTPRoute default/bad: spec.parentRefs[1]: Gateway default/edge has no listener named "https"; it has http on port 80
a.yaml:43: HTTPRoute default/bad: spec.rules[0].backendRefs[0]: Service default/web has no TCP port 81; it has 80
a.yaml:46: warning: Deployment web of apps/v1 is not a kind that Headgate reads; it is ignored
a.yaml:50: is not YAML: did not find expected node content

GatewayClass headgate: Accepted=True SupportedVersion=True
Gateway default/edge: Accepted=True ResolvedRefs=True
  listener http: Accepted=True ResolvedRefs=True, 2 routes
HTTPRoute default/bad:
  parent 0, Gateway edge http: Accepted=True ResolvedRefs=False (BackendNotFound)
  parent 1, Gateway edge https: Accepted=False (NoMatchingParent) ResolvedRefs=False (BackendNotFound)
HTTPRoute default/web: Accepted=True ResolvedRefs=True
3 errors, 1 warning
`
	warned := checkFrame + "---\napiVersion: v1\nkind: Thing\nmetadata: {name: a}\n"
	for _, tt := range []struct {
		name, text string
		flags      checkFlags
		want       string // a part of the output
		fails      bool
	}{
		{"clean", checkFrame, checkFlags{}, clean, false},
		{"problems", more, checkFlags{}, problems, true},
		{"a warning", warned, checkFlags{}, "0 errors, 1 warning\n", false},
		{"a warning, strictly", warned, checkFlags{strict: true}, "0 errors, 1 warning\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := checkDir(t, tt.text, tt.flags)
			if !strings.HasSuffix(got, tt.want) || tt.name == "problems" && got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if errors.Is(err, errProblems) != tt.fails || err != nil && !tt.fails {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	text, err := checkDir(t, checkFrame+"---\nkind: x\n", checkFlags{output: "json"})
	if !errors.Is(err, errProblems) {
		t.Errorf("error: %v", err)
	}
	var got struct {
		Problems []struct {
			Severity, File, Message string
			Line                    int
		}
		Objects []struct {
			Kind, Namespace, Name string
			Status                struct {
				Conditions []struct{ Type, Status string }
				Parents    []struct{ ControllerName string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(got.Problems) != 1 || got.Problems[0].Severity != "error" || got.Problems[0].Line != 34 || got.Problems[0].Message != "has no apiVersion" {
		t.Errorf("problems: %+v", got.Problems)
	}
	if len(got.Objects) != 3 || got.Objects[1].Kind != "Gateway" || got.Objects[1].Status.Conditions[0].Type != "Accepted" ||
		got.Objects[2].Status.Parents[0].ControllerName != compile.ControllerName {
		t.Errorf("objects: %+v", got.Objects)
	}
	if text, err := checkDir(t, checkFrame, checkFlags{output: "json"}); err != nil || !strings.Contains(text, `"problems": []`) {
		t.Errorf("a clean directory: %v\n%s", err, text)
	}
}

func TestCheckMistakes(t *testing.T) {
	if _, err := checkDir(t, "", checkFlags{output: "xml"}); err == nil || errors.Is(err, errProblems) {
		t.Errorf("an unknown output: %v", err)
	}
	if err := check(new(bytes.Buffer), filepath.Join(t.TempDir(), "gone"), time.Time{}, &checkFlags{output: "text"}); err == nil || errors.Is(err, errProblems) {
		t.Errorf("a directory that is not there: %v", err)
	}
	cmd := checkCmd()
	cmd.SetArgs(nil)
	cmd.SetOut(new(bytes.Buffer))
	cmd.SetErr(new(bytes.Buffer))
	if err := cmd.Execute(); err == nil {
		t.Error("no directory")
	}
}

func TestExpiries(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := expiries([]compile.Certificate{
		{Listener: "a", Secret: "default/fine", NotAfter: now.Add(30 * 24 * time.Hour)},
		{Listener: "a", Secret: "default/soon", NotAfter: now.Add(time.Hour)},
		{Listener: "b", Secret: "default/soon", NotAfter: now.Add(time.Hour)},
		{Listener: "b", Secret: "default/late", NotAfter: now.Add(-time.Hour)},
	}, now)
	if len(got) != 2 ||
		got[0].Object() != "Secret default/soon" || got[0].Message != "the certificate expires on 2026-01-01 01:00:00; renew it" ||
		got[1].Object() != "Secret default/late" || got[1].Message != "the certificate expired on 2025-12-31 23:00:00; renew it" {
		t.Errorf("%+v", got)
	}
}

// TestSamples: the samples are clean.
func TestSamples(t *testing.T) {
	var out bytes.Buffer
	if err := check(&out, "../../config/samples", time.Now(), &checkFlags{output: "text", strict: true}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "HTTPRoute "); n < 4 {
		t.Errorf("only %d routes:\n%s", n, out.String())
	}
}

// TestSamplesTLS: the HTTPS sample lacks the Secret that a script makes, and
// nothing else.
func TestSamplesTLS(t *testing.T) {
	text, err := os.ReadFile("../../config/samples-tls/https.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkDir(t, string(text), checkFlags{})
	if !errors.Is(err, errProblems) || !strings.HasPrefix(got, "a.yaml:") || !strings.Contains(got, "Secret default/sample-tls does not exist\n\n") ||
		!strings.HasSuffix(got, "\n1 error, 0 warnings\n") {
		t.Errorf("%v\n%s", err, got)
	}
}
