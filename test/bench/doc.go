//go:build linux

// Command bench measures the gateway beside other proxies. It starts a backend,
// then one proxy after the other, round by round, on equal terms, drives each
// with the same load, and writes what it measured as JSON and as a Markdown
// table with the ratio to each peer. Everything runs on the loopback interface
// and is ended with the program. See DESIGN.md for what is measured, and how.
//
//	go run ./test/bench
//	go run ./test/bench -scenario keep-64,close -peers headgate,nginx -rounds 5
package main
