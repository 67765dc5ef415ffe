package file

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

func checkBackendPolicy(c *checker, o *v1alpha1.BackendPolicy) {
	c.targets(o.Spec.TargetRefs)
	c.all(o.Validate())
}

// targets checks the names in references; Validate does the rest.
func (c *checker) targets(refs []gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
	for i, r := range refs {
		at := fmt.Sprintf("spec.targetRefs[%d]", i)
		c.reference(at, r.Group, r.Kind, r.Name, nil)
		if r.SectionName != nil {
			c.subdomain(at+".sectionName", string(*r.SectionName))
		}
	}
}

// all takes what the types say of themselves.
func (c *checker) all(errs field.ErrorList) {
	for _, e := range errs {
		c.fail(e.Field, "%s", e.ErrorBody())
	}
}
