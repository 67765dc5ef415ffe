// Package multicall picks one of several programs that are linked into one
// binary, by the name that the binary was called by.
package multicall
