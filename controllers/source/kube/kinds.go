package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/controllers/compile"
)

// kind is a kind of which all objects are followed.
type kind interface { //nolint:interfacebloat // what one kind costs, in one place
	// about names the kind.
	about() about
	// strip removes from an object what is not read, if it is of the kind.
	strip(any)
	// object returns an empty object.
	object() client.Object
	// follow takes the events of the informer and tells of each that matters. The
	// result tells whether all that was there has been taken.
	follow(ctx context.Context, informer cache.Informer, tell bell) (synced func() bool, err error)
	// forget drops all objects.
	forget()
	// fill puts the objects into an input.
	fill(*compile.Input)
}

// bell wakes the loop.
type bell struct {
	// now is for changes that may change what is served.
	now func()
	// soon is for changes of status, which are mostly our own writes: they must not
	// take the place of a change that somebody waits for.
	soon func()
}

// about names a kind.
type about struct {
	kind string
	// crd is the name of the CustomResourceDefinition; empty for a kind that every
	// cluster has.
	crd string
}

// kinds are all kinds that are followed whole; the Nodes when they are asked for.
func kinds(withNodes bool) []kind {
	all := []kind{
		gatewayClasses(),
		gateways(),
		httpRoutes(),
		referenceGrants(),
		namespaces(),
		services(),
		endpointSlices(),
		backendPolicies(),
		dataPlanes(),
		gatewayParameters(),
	}
	if withNodes {
		all = append(all, nodes())
	}
	return all
}

// references are the kinds of which only those objects are followed that Gateways
// name.
func references() []reference {
	return []reference{secrets(), configMaps()}
}

// strip removes from an object's metadata what nobody reads and what is often
// large.
func strip(o metav1.Object) {
	o.SetNamespace(word(o.GetNamespace()))
	o.SetGenerateName("")
	o.SetManagedFields(nil)
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetFinalizers(nil)
	o.SetOwnerReferences(nil)
}
