// Package kube reads the objects of a Kubernetes API server: a source for the
// loop in controllers, and the input for package compile. One file is one kind;
// the table in kinds.go names them all. Kinds whose CRD is missing are left out
// until it appears. Secrets and ConfigMaps are watched one by one, and only those
// that our Gateways name.
package kube
