// Package admin serves what an operator wants to see of a running data plane
// over HTTP: health, metrics, the snapshot that is served, the loops, and the
// runtime's profiles. It only reads. It runs on net/http, apart from the loops,
// over small interfaces that it declares, and is meant for a loopback address.
package admin
