// Package v1alpha1 has the types of Headgate's own kinds, group headgate.dev:
// what an operator tunes beside Gateway API, and what data planes say about
// themselves. The CRDs in config/crd and the copying of the types are generated
// from it ("make generate"). What a CRD refuses the Validate methods refuse with
// the same sentences, for files and for clusters with an older CRD.
//
// +kubebuilder:object:generate=true
// +groupName=headgate.dev
package v1alpha1
