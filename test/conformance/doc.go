// Package conformance holds the Gateway API's conformance suite, as it is. The
// program in run gives it a cluster and a controller to test:
//
//	go run ./run
package conformance
