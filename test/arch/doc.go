// Package arch holds the rules of the house as tests: which package may import
// which, that each says what it is for, how long a file may be, and what is not
// written here at all. The rules are tables: see rules_test.go.
//
// The test cache does not see what the go command reads for these tests. Run
// them with -count=1, as `make verify` does.
package arch
