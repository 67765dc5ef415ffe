// Package ewma estimates how long an upstream takes to answer, and from that
// how long to wait for it (paper 4.4, Eq. 13). One [Estimator] serves a cluster;
// each loop writes to a [Recorder] of its own, and what they recorded is merged
// once per cycle, by whichever loop comes first. Nothing locks, nothing waits,
// time is an argument. What the deadline applies to, and whether it is enforced
// or only shown, is the caller's to decide.
package ewma
