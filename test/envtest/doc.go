// Package envtest tests the control plane on a real API server, with objects
// only: what it writes, when, and what it leaves alone. There is no node, and the
// data plane is a fake that says what a test tells it to. It needs no root, but
// the programs of test/cluster: go run -C ../cluster . build.
package envtest
