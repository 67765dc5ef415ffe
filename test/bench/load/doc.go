//go:build linux

// Command load is what the benchmark harness puts on both sides of a proxy: an
// open-loop client at a constant rate, clients that hold connections or read
// and write slowly, a loop of full TLS handshakes, and the matching backends, one
// of them with a number of places and a service time of one's choice.
// Each subcommand prints one JSON object per line. It is one process with few
// threads, so that the harness can bind it to a CPU of its own.
package main
