// Package node tells what the data plane of this process does, in the DataPlane
// object of its node: what it serves, as the loop in controllers found it, and how
// busy it is, by a sample every few seconds outside of the data plane's loops.
// Every process writes its own object; the leader reads them all and says in the
// status of Gateways what holds on every node.
package node
