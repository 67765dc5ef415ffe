// Package port tells who holds a TCP port of this host, and whether connections
// to a port come to the socket that listens on it. It reads /proc, of this
// process's own network, and needs no rights. The loop in controllers asks it;
// nothing here knows of Gateways.
package port
