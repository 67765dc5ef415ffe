// Package ir is the immutable, Kubernetes-free description of everything the
// data plane serves: the snapshot. The control plane compiles one and hands it
// to the data plane; from then on nobody changes a byte of it. Parts that did
// not change between two snapshots may be the same pointers, and the data plane
// uses that identity to do only the work that the change asks for.
//
// The package imports the standard library only, knows neither Kubernetes nor
// HTTP's wire format, and holds no behaviour besides [Snapshot.Validate].
package ir
