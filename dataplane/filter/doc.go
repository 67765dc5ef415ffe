// Package filter holds what may change or answer a request on its way to the
// backend, and a response on its way back: one file per filter, and the chain
// that runs them in their explicit order. Filters are compiled once, when a
// snapshot is applied, and are shared by all loops: they keep no state of a
// request.
package filter
