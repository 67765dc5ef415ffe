package compile_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/dataplane/ir"
)

// withWorkers is a class whose parameters ask for loops, none for no parameters.
func withWorkers(n int32) compile.Input {
	namespace := gatewayv1.Namespace("infra")
	gc := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: compile.ControllerName}}
	in := compile.Input{Classes: []*gatewayv1.GatewayClass{gc}}
	if n > 0 {
		gc.Spec.ParametersRef = &gatewayv1.ParametersReference{Group: v1alpha1.GroupName, Kind: "GatewayParameters", Namespace: &namespace, Name: "all"}
		in.Parameters = []*v1alpha1.GatewayParameters{{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "all"}, Spec: v1alpha1.GatewayParametersSpec{Workers: &n}}}
	}
	return in
}

// What data planes must be restarted for is told on the class, with the nodes that
// it is about as soon as there are several.
func TestRestartAcross(t *testing.T) {
	const advice = ". This counts when a process starts: restart it, in a cluster with kubectl rollout restart of Headgate's DaemonSet or Deployment"
	here := ir.ApplyResult{Restart: []ir.Setting{{Name: "workers", Runs: "2", Asked: "4"}}}
	other := func(name, restart string) *v1alpha1.DataPlane {
		p := plane(name, 0)
		p.Status.Restart = restart
		return p
	}
	ready := []*corev1.Node{k8sNode("two", "True"), k8sNode("three", "True"), k8sNode("down", "Unknown")}
	for name, c := range map[string]struct {
		in     compile.Input
		res    ir.ApplyResult
		planes []*v1alpha1.DataPlane
		want   string
	}{
		"all is well": {in: withWorkers(4), planes: []*v1alpha1.DataPlane{other("two", "")}, want: "True ParametersApplied: The parameters are in effect"},
		"alone":       {in: withWorkers(4), res: here, want: "False RestartRequired: workers: 4 is asked for, the process runs with 2" + advice},
		"this one only": {
			in: withWorkers(4), res: here, planes: []*v1alpha1.DataPlane{other("two", "")},
			want: "False RestartRequired: workers: 4 is asked for, the process runs with 2" + advice,
		},
		"another one": {
			in: withWorkers(4), planes: []*v1alpha1.DataPlane{other("two", "workers: x"), other("down", "workers: y")},
			want: "False RestartRequired: On two: workers: x" + advice,
		},
		"all of them": {
			in: withWorkers(4), res: here, planes: []*v1alpha1.DataPlane{other("two", "workers: x"), other("three", "workers: y")},
			want: "False RestartRequired: On one: workers: 4 is asked for, the process runs with 2. On two: workers: x. On three: workers: y" + advice,
		},
		"for flags, since parameters went": {
			in: withWorkers(0), res: here, want: "False RestartRequired: workers: 4 is asked for, the process runs with 2" + advice,
		},
		"no parameters": {in: withWorkers(0), planes: []*v1alpha1.DataPlane{other("two", "")}},
		"nothing was taken": {
			in: withWorkers(4), res: ir.ApplyResult{Err: errors.New("no")},
			want: "False Pending: The data plane did not take the configuration and goes on with the one before: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := compile.Compile(c.in)
			before := report.Classes[0].Status.DeepCopy()
			got := ""
			for _, k := range report.Applied(c.res).Across("one", compile.ControllerName, c.planes, ready).Classes[0].Status.Conditions {
				if k.Type == compile.ConditionParametersApplied {
					got = string(k.Status) + " " + k.Reason + ": " + k.Message
				}
			}
			if got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(before, &report.Classes[0].Status); diff != "" {
				t.Errorf("the first report was changed:\n%s", diff)
			}
		})
	}
}

// A change of what a process has once is a change of the snapshot, and of no more.
func TestProcessChanges(t *testing.T) {
	var c compile.Compiler
	in := withWorkers(2)
	first, _ := c.Compile(in)
	in.Parameters = withWorkers(4).Parameters
	second, _ := c.Compile(in)
	again, _ := c.Compile(in)
	if first == second || second != again {
		t.Errorf("snapshots %p, %p, %p", first, second, again)
	}
	if first.Process.Workers != 2 || second.Process.Workers != 4 || first.Hash() == second.Hash() {
		t.Errorf("%+v, %+v", first.Process, second.Process)
	}
}
