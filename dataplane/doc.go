// Package dataplane serves snapshots: it accepts connections, turns requests
// into exchanges, matches them, and passes them to the upstream clusters, all
// on the reactor's loops. It knows nothing of Kubernetes. [Server.Apply] swaps
// one snapshot for the next without touching a connection.
//
// The exchange and everything below it are independent of the HTTP version:
// the codecs (http1 and http2) sit between them and the sockets.
package dataplane
