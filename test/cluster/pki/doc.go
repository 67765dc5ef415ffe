// Package pki makes the certificates and keys of a test cluster: one authority,
// and what it issues to servers and clients. It knows nothing of files or of
// Kubernetes; package cluster decides who gets what.
package pki
