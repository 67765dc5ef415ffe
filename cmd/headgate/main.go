// Command headgate is an edge ingress for the Gateway API: one file per
// subcommand.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := rootCmd().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	if !errors.Is(err, errProblems) {
		fmt.Fprintln(os.Stderr, "headgate:", err)
	}
	os.Exit(1)
}

// errProblems ends a command with exit code 1 after it has printed what is
// wrong itself.
var errProblems = errors.New("problems were found")
