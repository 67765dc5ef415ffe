// Command scale asks what many routes cost: it starts a real API server, the
// controller as a process of its own with the rights of config/rbac and its real
// data plane, and backends, and measures how soon status settles, how soon routes
// are served, what clients see meanwhile, and what the process uses. The ideas
// are those of the public gateway-api-bench. It needs no root, but the programs of
// test/cluster: go run -C ../cluster . build envtest.
//
//	go run .                                  # from test/scale
//	go run . -only propagation -routes 1000
package main
