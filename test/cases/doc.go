// Package cases runs the field cases against a running gateway: inputs that
// broke other gateways, with the answer that RFC 9110, RFC 9112 or the Gateway
// API asks for. Its tests build cmd/headgate, start it on directories of
// Gateway API YAML, speak to it over raw sockets, and look at the raw bytes
// that reach a recording backend. Nothing here imports the gateway's code.
//
// A subtest's name starts with the number of its case: B05/chunk-size-overflow.
package cases
