package compile

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// apiVersion is the series of the Gateway API whose CRDs this code was written
// for.
const apiVersion = "v1.6"

// The commands that install the CRDs: those of the Gateway API that Headgate
// knows, and its own.
const (
	InstallCRDs    = "kubectl apply --server-side -f https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.6.3/standard-install.yaml"
	InstallOwnCRDs = "kubectl apply --server-side -k config/crd (in Headgate's repository)"
)

// ConditionKindsServed is the type of the GatewayClass condition that says
// whether the cluster has all kinds that Headgate serves.
const ConditionKindsServed = "headgate.dev/KindsServed"

// The reasons of [ConditionKindsServed].
const (
	ReasonKindsServed = "KindsServed"
	ReasonKindMissing = "KindMissing"
)

// class is a GatewayClass that is ours.
type class struct {
	accepted   bool
	created    time.Time
	parameters *v1alpha1.GatewayParameters // may be nil
	report     *ClassReport
	issues     issues
}

// compileClass returns what a GatewayClass means, or nil when it is another
// controller's.
func compileClass(r *reader, gc *gatewayv1.GatewayClass) *class {
	opts := &r.in.Options
	if string(gc.Spec.ControllerName) != opts.ControllerName {
		return nil
	}
	c := &class{accepted: true, created: gc.CreationTimestamp.Time}
	gen := gc.Generation
	accepted := condition(gatewayv1.GatewayClassConditionStatusAccepted, true, gatewayv1.GatewayClassReasonAccepted, gen,
		"Headgate serves the Gateways of this class")
	if p := gc.Spec.ParametersRef; p != nil {
		namespace := ""
		if p.Namespace != nil {
			namespace = string(*p.Namespace)
		}
		var fault string
		if c.parameters, fault = r.parametersOf(string(p.Group), string(p.Kind), namespace, p.Name); fault != "" {
			c.accepted = false
			c.issues.add(Error, "spec.parametersRef", string(gatewayv1.GatewayClassReasonInvalidParameters), fault)
			accepted = condition(gatewayv1.GatewayClassConditionStatusAccepted, false, gatewayv1.GatewayClassReasonInvalidParameters, gen,
				summary(c.issues))
		}
	}
	conditions := []metav1.Condition{accepted, c.supportedVersion(opts.BundleVersions, gen)}
	if opts.BundleVersions != nil {
		conditions = append(conditions, kindsServed(opts.MissingCRDs, gen))
	}
	c.report = &ClassReport{
		Name: gc.Name, UID: gc.UID, Generation: gen,
		Status: gatewayv1.GatewayClassStatus{
			Conditions:        conditions,
			SupportedFeatures: supportedFeatures(opts.Features),
		},
	}
	return c
}

// supportedVersion says whether the CRDs in the cluster are those that Headgate
// knows. It serves what it can with others (best effort).
func (c *class) supportedVersion(found []string, gen int64) metav1.Condition {
	var foreign []string
	for _, v := range found {
		if v != apiVersion && !strings.HasPrefix(v, apiVersion+".") {
			if v == "" {
				v = "none"
			}
			foreign = append(foreign, v)
		}
	}
	if len(foreign) == 0 {
		return condition(gatewayv1.GatewayClassConditionStatusSupportedVersion, true, gatewayv1.GatewayClassReasonSupportedVersion, gen,
			"Gateway API "+apiVersion+" is supported")
	}
	msg := fmt.Sprintf("The Gateway API CRDs have the versions %s; Headgate knows %s and does its best. Install the CRDs of %s: %s",
		strings.Join(foreign, ", "), apiVersion, apiVersion, InstallCRDs)
	c.issues.add(Warning, "", string(gatewayv1.GatewayClassReasonUnsupportedVersion), msg)
	return condition(gatewayv1.GatewayClassConditionStatusSupportedVersion, false, gatewayv1.GatewayClassReasonUnsupportedVersion, gen, msg)
}

// kindsServed says whether the cluster has all kinds. The source tells the log.
func kindsServed(missing []string, gen int64) metav1.Condition {
	if len(missing) == 0 {
		return condition(ConditionKindsServed, true, ReasonKindsServed, gen, "The cluster has all kinds that Headgate serves")
	}
	return condition(ConditionKindsServed, false, ReasonKindMissing, gen, MissingCRDs(missing))
}

// MissingCRDs says what a cluster lacks, and what to do about it.
func MissingCRDs(names []string) string {
	var api, own bool
	for _, n := range names {
		ours := strings.HasSuffix(n, "."+v1alpha1.GroupName)
		api, own = api || !ours, own || ours
	}
	var commands []string
	if api {
		commands = append(commands, InstallCRDs)
	}
	if own {
		commands = append(commands, InstallOwnCRDs)
	}
	return fmt.Sprintf("The cluster does not have %s: what needs them is left out until they are there, and taken up at once then. To install them: %s",
		strings.Join(names, ", "), strings.Join(commands, "; "))
}
