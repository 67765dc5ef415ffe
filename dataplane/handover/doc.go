// Package handover passes the listening sockets of one process on to the next
// one on the same node, so that an upgrade refuses no connection. The process
// that serves answers on a Unix socket in a directory of its own; a new one asks
// there, gets the descriptors, and says when it serves; then the old one stops
// accepting and stands by until it is told to stop. It knows descriptors and two
// processes, not HTTP; what accepts is behind the Gate that it declares.
package handover
