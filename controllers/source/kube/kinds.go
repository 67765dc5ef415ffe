package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/controllers/compile"
)

// kind is a kind of which all objects are followed.
type kind interface {
	// about names the kind.
	about() about
	// strip removes from an object what is not read, if it is of the kind.
	strip(any)
	// object returns an empty object.
	object() client.Object
	// follow takes the events of the informer. changed is called after each that
	// matters. The result tells whether all that was there has been taken.
	follow(ctx context.Context, informer cache.Informer, changed func()) (synced func() bool, err error)
	// forget drops all objects.
	forget()
	// fill puts the objects into an input.
	fill(*compile.Input)
}

// about names a kind.
type about struct {
	kind string
	// crd is the name of the CustomResourceDefinition; empty for a kind that every
	// cluster has.
	crd string
}

// kinds are all kinds that are followed whole.
func kinds() []kind {
	return []kind{
		gatewayClasses(),
		gateways(),
		httpRoutes(),
		referenceGrants(),
		namespaces(),
		services(),
		endpointSlices(),
	}
}

// references are the kinds of which only those objects are followed that Gateways
// name.
func references() []reference {
	return []reference{secrets(), configMaps()}
}

// strip removes from an object's metadata what nobody reads and what is often
// large.
func strip(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	o.SetFinalizers(nil)
	o.SetOwnerReferences(nil)
}
