package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

// crds follows the CustomResourceDefinitions, by their metadata only: which there
// are, and of which version those of the Gateway API are.
type crds struct {
	mu       sync.Mutex
	versions map[string]string // by name; the bundle version
}

// crdObject is what crds follows.
func crdObject() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.APIVersion, o.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	return o
}

// stripCRD keeps of a CustomResourceDefinition its name and bundle version.
func stripCRD(o any) {
	x, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	version, has := x.Annotations[consts.BundleVersionAnnotation]
	strip(x)
	x.Labels = nil
	if has {
		x.Annotations = map[string]string{consts.BundleVersionAnnotation: version}
	}
}

func (c *crds) follow(_ context.Context, informer cache.Informer, again func()) (func() bool, error) {
	set := func(o any) {
		if x, ok := o.(*metav1.PartialObjectMetadata); ok {
			c.mu.Lock()
			version, have := c.versions[x.Name]
			now := x.Annotations[consts.BundleVersionAnnotation]
			if c.versions == nil {
				c.versions = make(map[string]string)
			}
			c.versions[x.Name] = now
			c.mu.Unlock()
			if !have || version != now {
				again()
			}
		}
	}
	reg, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if lost, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = lost.Obj
			}
			if x, ok := o.(*metav1.PartialObjectMetadata); ok {
				c.mu.Lock()
				delete(c.versions, x.Name)
				c.mu.Unlock()
				again()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow CustomResourceDefinition: %w", err)
	}
	return reg.HasSynced, nil
}

// has tells whether the definition exists.
func (c *crds) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.versions[name]
	return ok
}

// bundle returns the distinct bundle versions of the Gateway API's definitions,
// sorted; "" stands for one without a version.
func (c *crds) bundle() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make(map[string]bool)
	for name, version := range c.versions {
		if strings.HasSuffix(name, ".gateway.networking.k8s.io") {
			found[version] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
