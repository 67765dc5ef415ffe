package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/headgate/headgate/controllers/compile"
)

// subject is one object that should say something.
type subject struct {
	subjectKey
	// says is what it should say: while it is equal to what it was, that has not
	// changed.
	says any
	// live is what else it should say, of the state of its backends now: a change of
	// that alone is told less often.
	live string
	// object is the object as the source has it; nil when it should be made.
	object client.Object
	// change returns how to bring a version of the object up to date, or nil when
	// it is, or must be left alone.
	change func(have client.Object, now metav1.Time) write
	// notBefore keeps the write back; zero does not.
	notBefore time.Time
}

// write brings one object up to date and returns it as it is then.
type write func(context.Context, client.Client) (client.Object, error)

// subjectKey names a subject.
type subjectKey struct {
	kind string
	types.NamespacedName
}

// subjects returns all that the turn has something to say about, in the place of
// those of an earlier one.
func (k *Kube) subjects(t *turn, old []subject) []subject {
	out := slices.Grow(old[:0], len(t.report.Classes)+2*len(t.report.Gateways)+len(t.report.Routes))
	out = k.classes(out, t)
	out = k.gateways(out, t)
	out = k.httpRoutes(out, t)
	out = k.policies(out, t)
	if k.o.Services {
		out = k.services(out, t)
	}
	return out
}

// statusWrite writes what differs in the status. It fails when the object is not
// the version have any more.
func statusWrite(have, want client.Object) write {
	return func(ctx context.Context, c client.Client) (client.Object, error) {
		base, ok := have.DeepCopyObject().(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is not an object", have)
		}
		patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
		return want, c.Status().Patch(ctx, want, patch)
	}
}

// classes adds the GatewayClasses.
func (k *Kube) classes(out []subject, t *turn) []subject {
	for _, r := range t.report.Classes {
		object := find(t.input.Classes, "", r.Name)
		if object == nil || object.UID != r.UID {
			continue
		}
		out = append(out, subject{
			subjectKey: subjectKey{"GatewayClass", types.NamespacedName{Name: r.Name}}, says: r, object: object,
			change: func(o client.Object, now metav1.Time) write {
				have, ok := o.(*gatewayv1.GatewayClass)
				if !ok || have.Generation != r.Generation || newer(have.Status.Conditions, classConditions, r.Generation) {
					return nil
				}
				want := have.DeepCopy()
				want.Status.Conditions = merged(have.Status.Conditions, r.Status.Conditions, classConditions, now)
				want.Status.SupportedFeatures = r.Status.SupportedFeatures
				if equality.Semantic.DeepEqual(have.Status, want.Status) {
					return nil
				}
				return statusWrite(have, want)
			},
		})
	}
	return out
}

// gateways adds the Gateways.
func (k *Kube) gateways(out []subject, t *turn) []subject {
	for _, r := range t.report.Gateways {
		object := find(t.input.Gateways, r.Namespace, r.Name)
		if object == nil || object.UID != r.UID {
			continue
		}
		out = append(out, subject{
			subjectKey: subjectKey{"Gateway", r.NamespacedName}, says: r, object: object, notBefore: t.held[r.NamespacedName],
			change: func(o client.Object, now metav1.Time) write {
				have, ok := o.(*gatewayv1.Gateway)
				if !ok || have.Generation != r.Generation || newerGateway(have, r.Generation) {
					return nil
				}
				want := have.DeepCopy()
				want.Status.Addresses = r.Status.Addresses
				want.Status.Conditions = merged(have.Status.Conditions, r.Status.Conditions, gatewayConditions, now)
				want.Status.Listeners = mergedListeners(have.Status.Listeners, r.Status.Listeners, now)
				if equality.Semantic.DeepEqual(have.Status, want.Status) {
					return nil
				}
				return statusWrite(have, want)
			},
		})
	}
	return out
}

func newerGateway(gw *gatewayv1.Gateway, generation int64) bool {
	if newer(gw.Status.Conditions, gatewayConditions, generation) {
		return true
	}
	for _, l := range gw.Status.Listeners {
		if newer(l.Conditions, listenerConditions, generation) {
			return true
		}
	}
	return false
}

// httpRoutes adds the HTTPRoutes with a parent of ours, and those that say that
// they have one.
func (k *Kube) httpRoutes(out []subject, t *turn) []subject {
	reports := t.report.Routes
	for _, object := range t.input.HTTPRoutes {
		for len(reports) > 0 && lessName(reports[0].NamespacedName, object.Namespace, object.Name) {
			reports = reports[1:]
		}
		var r *compile.RouteReport
		if len(reports) > 0 && reports[0].Name == object.Name && reports[0].Namespace == object.Namespace && reports[0].UID == object.UID {
			r = reports[0]
		}
		if r == nil && !k.named(object.Status.Parents) {
			continue
		}
		digest := ""
		if r != nil {
			digest = t.live.digest(r.Clusters)
		}
		out = append(out, subject{
			subjectKey: subjectKey{"HTTPRoute", types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}, says: r, object: object, live: digest,
			change: func(o client.Object, now metav1.Time) write {
				have, ok := o.(*gatewayv1.HTTPRoute)
				if !ok {
					return nil
				}
				var parents []gatewayv1.RouteParentStatus
				if r != nil {
					if have.Generation != r.Generation || k.newerParents(have.Status.Parents, r.Generation) {
						return nil
					}
					parents = t.live.parents(r, have.Status.Parents, k.o.ControllerName)
				}
				want := have.DeepCopy()
				want.Status.Parents = mergedParents(have.Status.Parents, parents, k.o.ControllerName, now)
				if equality.Semantic.DeepEqual(have.Status.Parents, want.Status.Parents) {
					return nil
				}
				return statusWrite(have, want)
			},
		})
	}
	return out
}

// named tells whether one of the entries is ours.
func (k *Kube) named(parents []gatewayv1.RouteParentStatus) bool {
	for _, p := range parents {
		if p.ControllerName == k.o.ControllerName {
			return true
		}
	}
	return false
}

func (k *Kube) newerParents(parents []gatewayv1.RouteParentStatus, generation int64) bool {
	for _, p := range parents {
		if p.ControllerName == k.o.ControllerName && newer(p.Conditions, parentConditions, generation) {
			return true
		}
	}
	return false
}

// clock returns the time as conditions have it.
func clock(now time.Time) metav1.Time { return metav1.NewTime(now.UTC().Truncate(time.Second)) }
