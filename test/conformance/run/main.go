// Command run runs the Gateway API's conformance suite, unmodified, against
// Headgate: it builds what is needed, starts a cluster with a node, installs the
// Helm chart with an address pool, and runs the suite; it writes the report and
// ends everything again. It needs root, and bin/helm.
//
//	go run ./run                                 # from test/conformance
//	go run ./run -run-test HTTPRouteWeight -v    # one test
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	profiles string
	runTest  string
	skip     string
	runs     int
	keep     bool
	verbose  bool
	timeout  time.Duration
	version  string
}

func main() {
	var o options
	flag.StringVar(&o.profiles, "profiles", "GATEWAY-HTTP", "conformance profiles, separated by commas")
	flag.StringVar(&o.runTest, "run-test", "", "run one test only; no report is written")
	flag.StringVar(&o.skip, "skip-tests", "", "leave tests out, separated by commas; no report is written")
	flag.IntVar(&o.runs, "runs", 1, "how often to run the suite, one after the other")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster and the controller up")
	flag.BoolVar(&o.verbose, "v", false, "show all that the suite says")
	flag.DurationVar(&o.timeout, "timeout", 30*time.Minute, "for one run of the suite")
	flag.StringVar(&o.version, "version", "", "version of Headgate in the report; default: what git describe says")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	result, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if result.passed+result.failed > 0 {
		for _, name := range result.failures {
			fmt.Println("failed:", name)
		}
		fmt.Printf("%d passed, %d failed, %d skipped\n", result.passed, result.failed, result.skipped)
	}
	if err != nil || result.failed > 0 {
		os.Exit(1)
	}
}
