// Package controllers holds the loop that carries objects to the data plane:
// Input, Compile, Validate, Apply, and then the status of what came of it. A
// source below source gives the input, compile turns it into a snapshot, the data
// plane takes that, and a status sink tells the rest of the world. The loop is the
// same for a cluster and for a directory.
package controllers
