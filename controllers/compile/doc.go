// Package compile turns Kubernetes objects into the snapshot that the data plane
// serves and into the report of what became of each object. It is pure: it reads
// no clock, no file and no network, so that the same objects give the same
// snapshot from a cluster and from a directory. There is one file per kind. Its
// input comes from the packages below source; its snapshot goes to the data plane
// by way of the loop in controllers; its report goes to a status sink.
package compile
