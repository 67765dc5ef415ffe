// Package cluster runs a real Kubernetes cluster on this machine for tests: a
// control plane on loopback, or the same with one real node in namespaces of
// its own. It starts the programs that package binaries built, keeps everything
// about them in one state directory, and ends all of it again, also after a
// crash. One cluster at a time is up on a machine. DESIGN.md beside go.mod says
// what is tricky and why.
package cluster
