// Package pressure decides what happens to a request when an upstream's pool
// fills up: admit it, hold it, or shed it (paper 3.4, Eq. 8-10). A [Gate] is the
// pool of one cluster, over all loops: the places that requests take, the pace
// at which the last of them are given out, and the bounds of what is held. A
// [Process] is the gate of the whole process, at its listeners. Both are state
// only: time is an argument, nothing locks, nothing waits, and who waits for
// what is the caller's to keep.
package pressure
