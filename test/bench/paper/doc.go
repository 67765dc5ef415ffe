//go:build linux

// Command paper repeats the experiments of the paper's section 5: Tables 1 to 4
// and the two failure scenarios of 5.5, with the gateway beside nginx and Apache
// httpd. It writes the raw samples, tables and plots, and puts its figures into
// docs/paper.md, beside the paper's. Everything runs on the loopback interface
// and is ended with the program. See DESIGN.md for what is measured, and how.
//
//	go run .                       # everything, less than half an hour
//	go run . -quick                # everything, in about 5 minutes, to see that it works
//	go run . -only table3,storm    # some of it; the rest stays as it was
//	go run . -render               # tables and plots again, from the samples that are there
package main
