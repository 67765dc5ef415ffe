// Package binaries builds the programs of a test cluster from Go modules and
// keeps them outside the source tree, in a directory named by what they were
// built from. Package cluster runs them; so does controller-runtime's envtest,
// whose layout the directory has.
package binaries
