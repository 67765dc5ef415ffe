// Package file builds a compile.Input out of a directory of YAML and JSON files,
// as kubectl would apply them, and watches the directory. It does what the API
// server does before a controller sees an object: strict decoding, defaults, and
// the checks of the CRDs. Its neighbour below source reads a cluster instead; the
// loop in controllers takes either.
package file
