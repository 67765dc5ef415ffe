package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/controllers/compile"
)

// object is a pointer to a Kubernetes object.
type object interface {
	comparable
	client.Object
}

// list follows all objects of one kind. The list that it gives out is sorted and
// never changes: the next change is made in a copy. So an input costs nothing for
// the kinds that did not change.
type list[T object] struct {
	names about
	new   func() T
	// lighten removes from an object what is not read.
	lighten func(T)
	// same tells whether two versions of an object differ in nothing that is
	// read. The older one is kept then, and nobody is woken. Nil is for kinds whose
	// generation counts their specs, and whose status we write: of those every
	// version is kept.
	same func(a, b T) bool
	// slow is for kinds that change nothing of what is served.
	slow bool
	put  func(*compile.Input, []T)

	mu      sync.Mutex
	objects []T
	given   bool // objects is in an input: copy before a change
}

func (l *list[T]) about() about { return l.names }

func (l *list[T]) object() client.Object { return l.new() }

func (l *list[T]) strip(o any) {
	if x, ok := o.(T); ok && l.lighten != nil {
		l.lighten(x)
	}
}

func (l *list[T]) follow(_ context.Context, informer cache.Informer, tell bell) (func() bool, error) {
	set := func(o any) {
		x, ok := o.(T)
		if !ok {
			return
		}
		switch news := l.set(x); {
		case news == changed && !l.slow:
			tell.now()
		case news != nothing:
			tell.soon()
		}
	}
	reg, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if lost, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = lost.Obj
			}
			if x, ok := o.(T); ok && l.remove(x) {
				tell.now()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", l.names.kind, err)
	}
	return reg.HasSynced, nil
}

// news is what a version of an object says.
type news uint8

const (
	nothing news = iota
	changed
	written // the spec is the same: metadata or status were written
)

// set takes a version of an object.
func (l *list[T]) set(x T) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, have := l.search(x)
	if !have {
		l.own()
		l.objects = slices.Insert(l.objects, i, x)
		return changed
	}
	old := l.objects[i]
	twin := old.GetUID() == x.GetUID()
	if twin && l.same != nil && l.same(old, x) {
		return nothing
	}
	l.own()
	l.objects[i] = x
	if twin && l.same == nil && old.GetGeneration() == x.GetGeneration() && x.GetGeneration() > 0 {
		return written
	}
	return changed
}

func (l *list[T]) remove(x T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, have := l.search(x)
	if !have {
		return false
	}
	l.own()
	l.objects = slices.Delete(l.objects, i, i+1)
	return true
}

func (l *list[T]) search(x T) (int, bool) {
	return slices.BinarySearchFunc(l.objects, x, func(a, b T) int {
		switch {
		case compile.Less(a, b):
			return -1
		case compile.Less(b, a):
			return 1
		}
		return 0
	})
}

// own makes sure that objects is in no input.
func (l *list[T]) own() {
	if l.given {
		l.objects = slices.Clone(l.objects)
		l.given = false
	}
}

func (l *list[T]) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects, l.given = nil, false
}

func (l *list[T]) fill(in *compile.Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = true
	l.put(in, l.objects)
}
