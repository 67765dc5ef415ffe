package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/api/v1alpha1"
)

// policies adds the BackendPolicies.
func (k *Kube) policies(out []subject, t *turn) []subject {
	for _, r := range t.report.Policies {
		object := find(t.input.BackendPolicies, r.Namespace, r.Name)
		if object == nil || object.UID != r.UID {
			continue
		}
		clusters := targets(object, t.input.Services)
		out = append(out, subject{
			subjectKey: subjectKey{r.Kind, r.NamespacedName}, says: r, object: object, live: t.live.digest(clusters),
			change: func(o client.Object, now metav1.Time) write {
				have, ok := o.(*v1alpha1.BackendPolicy)
				if !ok || have.Generation != r.Generation || k.newerAncestors(have.Status.Ancestors, r.Generation) {
					return nil
				}
				want := have.DeepCopy()
				want.Status.Ancestors = mergedAncestors(have.Status.Ancestors, r.Ancestors, k.o.ControllerName, now)
				// Two controllers may have something to say: one of them tells the state.
				if len(want.Status.Ancestors) > 0 && want.Status.Ancestors[0].ControllerName == k.o.ControllerName {
					t.live.policy(clusters, &want.Status)
				}
				if equality.Semantic.DeepEqual(have.Status, want.Status) {
					return nil
				}
				return statusWrite(have, want)
			},
		})
	}
	return out
}

func (k *Kube) newerAncestors(ancestors []gatewayv1.PolicyAncestorStatus, generation int64) bool {
	return slices.ContainsFunc(ancestors, func(a gatewayv1.PolicyAncestorStatus) bool {
		return a.ControllerName == k.o.ControllerName && newer(a.Conditions, policyConditions, generation)
	})
}
