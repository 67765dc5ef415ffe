// Package status writes what became of the objects to where their authors look.
// It takes the report of compile from the loop in controllers. A [Dir] writes
// files beside the files that were read; a [Kube] writes the objects' status to
// their API server.
package status
