// Command report reads the output of one or more `go test -json` runs, prints a
// line for each package and the output of what failed, and ends with a list of the
// failures and the line "N passed, N failed, N skipped", where N counts tests and
// subtests. It exits
// with 1 when something failed, or when nothing ran.
//
//	go test -json ./... | go run ./test/report
package main

import (
	"fmt"
	"os"
)

func main() {
	sum, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	fmt.Print(sum.list())
	fmt.Println(sum)
	if !sum.good() {
		os.Exit(1)
	}
}
