package compile

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// apiVersion is the series of the Gateway API whose CRDs this code was written
// for.
const apiVersion = "v1.6"

// class is a GatewayClass that is ours.
type class struct {
	accepted bool
	report   *ClassReport
	issues   issues
}

// compileClass returns what a GatewayClass means, or nil when it is another
// controller's.
func compileClass(gc *gatewayv1.GatewayClass, opts *Options) *class {
	if string(gc.Spec.ControllerName) != opts.ControllerName {
		return nil
	}
	c := &class{accepted: true}
	gen := gc.Generation
	accepted := condition(gatewayv1.GatewayClassConditionStatusAccepted, true, gatewayv1.GatewayClassReasonAccepted, gen,
		"Headgate serves the Gateways of this class")
	if p := gc.Spec.ParametersRef; p != nil {
		c.accepted = false
		c.issues.add(Error, "spec.parametersRef", string(gatewayv1.GatewayClassReasonInvalidParameters),
			fmt.Sprintf("%s %q: Headgate takes no parameters; remove parametersRef", p.Kind, p.Name))
		accepted = condition(gatewayv1.GatewayClassConditionStatusAccepted, false, gatewayv1.GatewayClassReasonInvalidParameters, gen,
			summary(c.issues))
	}
	version := c.supportedVersion(opts.BundleVersions, gen)
	c.report = &ClassReport{
		Name: gc.Name, UID: gc.UID, Generation: gen,
		Status: gatewayv1.GatewayClassStatus{
			Conditions:        []metav1.Condition{accepted, version},
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
	msg := fmt.Sprintf("The Gateway API CRDs have the versions %s; Headgate knows %s and does its best. Install the CRDs of %s",
		strings.Join(foreign, ", "), apiVersion, apiVersion)
	c.issues.add(Warning, "", string(gatewayv1.GatewayClassReasonUnsupportedVersion), msg)
	return condition(gatewayv1.GatewayClassConditionStatusSupportedVersion, false, gatewayv1.GatewayClassReasonUnsupportedVersion, gen, msg)
}
