// Command cluster runs a real Kubernetes cluster on this machine for tests. It
// is the command line of package cluster; README.md says how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// Exit codes.
const (
	exitFailed  = 1 // it was tried and went wrong
	exitUsage   = 2 // it was not understood
	exitHeld    = 3 // another cluster is up on this machine
	exitMissing = 4 // root, a package or a built binary is missing
	exitNotUp   = 5 // there is no cluster
)

func main() {
	// The process's main thread stays in the machine's namespaces: a goroutine
	// that enters the node's gets another one.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// app is the command line with what it reads and writes.
type app struct {
	stdin  io.Reader
	stdout io.Writer // results, for scripts
	stderr io.Writer // progress and errors, for people
}

// command is a subcommand.
type command struct {
	name      string
	arguments string
	summary   string
	run       func(ctx context.Context, args []string) error
}

func (a *app) commands() []command {
	return []command{
		{"build", "[all|envtest|kubectl]", "build the cluster's programs into the cache (12 minutes the first time)", a.build},
		{"up", "cp|node [--dir D] [--install] [--image FILE]... [--addresses CIDR]...", "start a cluster", a.up},
		{"down", "[--dir D]", "end it and remove all but its logs; also after a crash", a.down},
		{"status", "[--dir D]", "say what is up", a.status},
		{"kubeconfig", "[--dir D]", "print the administrator's kubeconfig file", a.kubeconfig},
		{"assets", "", "print the directory of the programs, envtest's KUBEBUILDER_ASSETS", a.assets},
		{"enter", "[--dir D] CMD...", "run a command on the node", a.enter},
		{"image", "NAME:TAG[,NAME:TAG...] OUT.tar ROOTDIR ENTRYPOINT...", "make an image archive from a directory", a.image},
		{"load", "[--dir D] IMAGE.tar...", "give image archives to the node", a.load},
		{"addresses", "add|del|list [--dir D] [CIDR...]", "change the node's further addresses", a.addresses},
		{"apiserver", "stop|start [--dir D]", "end or start the API server alone", a.apiServer},
		{"crds", "[--dir D] gateway-api-standard|gateway-api-experimental|DIR|FILE", "apply CRDs", a.crds},
	}
}

// usageError is an error of who called.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// exitError is the exit code of a command that was run for the caller.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// run runs the subcommand and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	if len(args) == 0 {
		a.usage(a.stderr)
		return exitUsage
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		a.usage(a.stdout)
		return 0
	}
	for _, c := range a.commands() {
		if c.name == args[0] {
			return a.report(c, c.run(ctx, args[1:]))
		}
	}
	fmt.Fprintf(a.stderr, "cluster: there is no command %q\n", args[0])
	a.usage(a.stderr)
	return exitUsage
}

// report says what went wrong and returns the exit code.
func (a *app) report(c command, err error) int {
	var (
		usage   usageError
		exit    exitError
		held    *cluster.HeldError
		missing *cluster.MissingError
	)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(a.stdout, "usage: cluster %s %s\n%s\n", c.name, c.arguments, c.summary)
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	fmt.Fprintf(a.stderr, "cluster %s: %v\n", c.name, err)
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "usage: cluster %s %s\n", c.name, c.arguments)
		return exitUsage
	case errors.As(err, &held):
		return exitHeld
	case errors.As(err, &missing), errors.Is(err, cluster.ErrNotRoot):
		if missing != nil && len(missing.Packages) > 0 {
			fmt.Fprintln(a.stderr, "or let up do it, with --install")
		}
		return exitMissing
	case errors.Is(err, cluster.ErrNotUp):
		return exitNotUp
	}
	return exitFailed
}

func (a *app) usage(w io.Writer) {
	fmt.Fprintln(w, "usage: cluster COMMAND [ARGUMENT...]")
	fmt.Fprintln(w, "A real Kubernetes cluster on this machine, for tests; see README.md.")
	for _, c := range a.commands() {
		fmt.Fprintf(w, "\n  %s\n      %s\n", strings.TrimSpace(c.name+" "+c.arguments), c.summary)
	}
	fmt.Fprintf(w, "\nexit codes: 0 done, %d failed, %d not understood, %d another cluster is up, %d something must be installed, built or run as root, %d no cluster is up\n",
		exitFailed, exitUsage, exitHeld, exitMissing, exitNotUp)
}
