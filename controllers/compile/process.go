package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
	"github.com/headgate/headgate/dataplane/ir"
)

// ConditionParametersApplied is the type of the GatewayClass condition that says
// whether its parameters are in effect as they stand, with what a process has only
// once. A class without parameters has it when a process must be restarted.
const ConditionParametersApplied = "headgate.dev/ParametersApplied"

// The reasons of [ConditionParametersApplied].
const (
	ReasonParametersApplied = "ParametersApplied"
	// ReasonOtherClass is when another class says what a process has once.
	ReasonOtherClass = "OtherClass"
	// ReasonRestartRequired is when a process runs with what it was started with.
	ReasonRestartRequired = "RestartRequired"
)

// processFields returns the fields of parameters that are about the process.
func processFields(p *v1alpha1.GatewayParameters) []string {
	var out []string
	if p == nil {
		return nil
	}
	if p.Spec.Workers != nil {
		out = append(out, "workers")
	}
	if p.Spec.Pinning != nil {
		out = append(out, "pinning")
	}
	if x := p.Spec.Pressure; x != nil && *x != (v1alpha1.ProcessPressure{}) {
		out = append(out, "pressure")
	}
	return out
}

// processOf returns what parameters say about the process.
func processOf(p *v1alpha1.GatewayParameters) ir.Process {
	var out ir.Process
	overlayInt(&out.Workers, p.Spec.Workers)
	if p.Spec.Pinning != nil {
		out.Pinning = ir.PinOff
		if *p.Spec.Pinning == v1alpha1.PinningPerCPU {
			out.Pinning = ir.PinPerCPU
		}
	}
	if x := p.Spec.Pressure; x != nil {
		if x.MaxConnections != nil {
			out.MaxConnections = int64(*x.MaxConnections)
		}
		out.MemoryLimit = x.MemoryLimit.Value()
	}
	return out
}

// settleProcess decides which class says what the process is like: the oldest of
// those that say something, then the first by name. It returns that, and the class
// that tells of it: the same one, or the oldest accepted one. It notes in the
// reports whose parameters are in effect.
func settleProcess(classes map[string]*class) (ir.Process, string) {
	names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		return cmp.Or(classes[a].created.Compare(classes[b].created), strings.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return !classes[name].accepted })
	if len(names) == 0 {
		return ir.Process{}, ""
	}
	var process ir.Process
	teller := names[0]
	counts := slices.IndexFunc(names, func(name string) bool { return len(processFields(classes[name].parameters)) > 0 })
	if counts >= 0 {
		teller = names[counts]
		process = processOf(classes[teller].parameters)
	}
	for _, name := range names {
		c := classes[name]
		if c.parameters == nil {
			continue
		}
		said := condition(ConditionParametersApplied, true, ReasonParametersApplied, c.report.Generation, "The parameters are in effect")
		if fields := processFields(c.parameters); len(fields) > 0 && name != teller && processOf(c.parameters) != process {
			msg := fmt.Sprintf("GatewayParameters %s: spec.%s: a process has this once, and GatewayClass %s says it, which is older or first by name; "+
				"say it there, or the same here. The rest is in effect",
				keyOf(c.parameters), strings.Join(fields, ", spec."), teller)
			c.issues.add(Warning, "spec.parametersRef", ReasonOtherClass, msg)
			said = condition(ConditionParametersApplied, false, ReasonOtherClass, c.report.Generation, msg)
		}
		c.report.Status.Conditions = append(c.report.Status.Conditions, said)
	}
	return process, teller
}

// unheeded says what a Gateway's own parameters say in vain, or nothing.
func unheeded(own, class *v1alpha1.GatewayParameters) string {
	fields := processFields(own)
	if len(fields) == 0 || own == class {
		return ""
	}
	return fmt.Sprintf("GatewayParameters %s: spec.%s: this counts in the parameters of a GatewayClass only, since a process has it once, for all Gateways; say it there",
		keyOf(own), strings.Join(fields, ", spec."))
}

// restartMessage tells what a process does not run with yet.
func restartMessage(settings []ir.Setting) string {
	var parts []string
	for _, s := range settings {
		parts = append(parts, fmt.Sprintf("%s: %s is asked for, the process runs with %s", s.Name, s.Asked, s.Runs))
	}
	return strings.Join(parts, "; ")
}

// restartAdvice follows what is told of processes that must be restarted.
const restartAdvice = ". This counts when a process starts: restart it, in a cluster with kubectl rollout restart of Headgate's DaemonSet or Deployment"

// Restart says what the process must be restarted for; "" for nothing. It is known
// after [Report.Applied].
func (r *Report) Restart() string { return r.restart }

// notApplied returns the classes with what a data plane that took nothing, or must be
// restarted, makes of the condition.
func (r *Report) notApplied(res ir.ApplyResult) []*ClassReport {
	switch {
	case res.Err != nil:
		return r.saying(func(c *ClassReport) bool {
			return conditionOf(c.Status.Conditions, ConditionParametersApplied).Status == metav1.ConditionTrue
		}, string(gatewayv1.GatewayClassReasonPending), notTaken(res.Err))
	case r.restart != "":
		return r.saying(func(c *ClassReport) bool { return c.Name == r.teller }, ReasonRestartRequired, r.restart+restartAdvice)
	}
	return r.Classes
}

// saying returns the classes with those for which is holds saying that their
// parameters are not in effect, and why.
func (r *Report) saying(is func(*ClassReport) bool, reason, message string) []*ClassReport {
	out := slices.Clone(r.Classes)
	for i, c := range out {
		if !is(c) {
			continue
		}
		now := *c
		said := condition(ConditionParametersApplied, false, reason, c.Generation, message)
		now.Status.Conditions = slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(o metav1.Condition) bool { return o.Type == said.Type })
		now.Status.Conditions = append(now.Status.Conditions, said)
		out[i] = &now
	}
	return out
}

// restartsAcross returns the classes as they are with what the other data planes say
// that they must be restarted for, nil when none of them says so.
func (r *Report) restartsAcross(self string, others []*v1alpha1.DataPlane) []*ClassReport {
	var is issues
	if r.restart != "" {
		is.add(Warning, "", "", "On "+self+": "+r.restart)
	}
	n := len(is)
	for _, p := range others {
		if p.Status.Restart != "" {
			is.add(Warning, "", "", "On "+p.Name+": "+p.Status.Restart)
		}
	}
	if len(is) == n {
		return nil
	}
	return r.saying(func(c *ClassReport) bool { return c.Name == r.teller }, ReasonRestartRequired, summary(is)+restartAdvice)
}
