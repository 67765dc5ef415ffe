// Package accesslog writes one line of JSON for each request and never makes a
// loop wait for it. Each loop appends to a buffer of its own and hands it to one
// writing goroutine by an atomic swap; when the output is slower than the
// requests, entries are dropped and counted, and memory stays what it was. The
// exchange writes here; what was dropped is shown by dataplane/metrics.
package accesslog
