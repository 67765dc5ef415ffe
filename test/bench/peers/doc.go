// Package peers is the home of the proxies that the benchmarks compare with and
// that are built from source: Caddy, as a tool of this module, and reverseproxy.
// It is a module of its own, so that their dependencies stay out of the
// gateway's.
package peers
