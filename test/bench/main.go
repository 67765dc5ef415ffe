//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// bench is one run of the harness.
type bench struct {
	site     *site
	peers    []peer
	duration time.Duration
	every    bool // every peer in every scenario
	cpus     int
	result   result

	backendWorkers int // with which the backends run now; 0 when they don't
}

// Scenarios that are not in the table of closed loops.
var special = []string{"rate", "idle", "stalled", "hung"}

func main() {
	var names []string
	for _, sc := range scenarios {
		names = append(names, sc.name)
	}
	names = append(names, special...)
	scenarioFlag := flag.String("scenario", "all", "comma-separated: "+strings.Join(names, ", ")+", or all")
	peersFlag := flag.String("peers", strings.Join(everyPeer, ","), "comma-separated")
	duration := flag.Duration("duration", 3*time.Second, "of each measurement, in whole seconds")
	rounds := flag.Int("rounds", 3, "of the closed loops and rates")
	every := flag.Bool("every", false, "every peer in every scenario (takes much longer)")
	out := flag.String("out", "test/bench/results", "directory of bench.json and bench.md")
	flag.Parse()

	wanted := strings.Split(*scenarioFlag, ",")
	if *scenarioFlag == "all" {
		wanted = names
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			fatal(fmt.Errorf("unknown scenario %q: use %s", name, strings.Join(names, ", ")))
		}
	}
	if err := run(wanted, strings.Split(*peersFlag, ","), *duration, *rounds, *every, *out); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func run(wanted, peerNames []string, duration time.Duration, rounds int, every bool, out string) error {
	root, err := rig.ModuleRoot("")
	if err != nil {
		return err
	}
	begin := time.Now()
	bin, err := os.MkdirTemp("", "headgate-bench-bin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	tools, missing := findTools(root, bin, peerNames)
	for _, name := range []string{"nginx", "wrk", "load"} { // the backend and the loaders
		if tools[name] == "" {
			return fmt.Errorf("%s: %s", name, missing[name])
		}
	}
	b := &bench{duration: duration, every: every, cpus: runtime.NumCPU()}
	if b.peers, b.result.Skipped, err = choosePeers(peerNames, tools, missing); err != nil {
		return err
	}
	for name, why := range b.result.Skipped {
		b.logf("skipping %s: %s", name, why)
	}
	if b.site, err = newSite(tools); err != nil {
		return err
	}
	defer b.site.close()

	// An interrupt ends all that was started.
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		b.measureAll(wanted, rounds)
	}()
	b.logf("built in %v", time.Since(begin).Round(time.Second))
	select {
	case <-finished:
	case <-interrupt:
		return fmt.Errorf("interrupted")
	}
	b.result.Load[1] = rig.LoadAverage()
	b.logf("finished in %v", time.Since(begin).Round(time.Second))
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	return b.result.write(out)
}

// measureAll runs the scenarios, the closed loops round by round.
func (b *bench) measureAll(wanted []string, rounds int) {
	b.result.Time = time.Now().UTC().Format("2006-01-02 15:04 MST")
	b.result.CPUs, b.result.Kernel = b.cpus, rig.Kernel()
	b.result.Duration, b.result.Rounds = b.duration.String(), rounds
	b.result.Load[0] = rig.LoadAverage()
	b.result.Versions = make(map[string]string)
	for _, p := range b.peers {
		b.result.Versions[p.name] = p.version(b.site)
	}
	for round := range rounds {
		for _, sc := range scenarios {
			if slices.Contains(wanted, sc.name) {
				b.runScenario(sc, round)
			}
		}
	}
	if slices.Contains(wanted, "rate") {
		b.runRates(rounds)
	}
	if slices.Contains(wanted, "idle") {
		b.runIdle()
	}
	if slices.Contains(wanted, "stalled") {
		b.runStalled()
	}
	if slices.Contains(wanted, "hung") {
		b.runHung()
	}
}

// peer returns a chosen peer.
func (b *bench) peer(name string) (peer, bool) {
	i := slices.IndexFunc(b.peers, func(p peer) bool { return p.name == name })
	if i < 0 {
		return peer{}, false
	}
	return b.peers[i], true
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// note keeps what went wrong for the result.
func (b *bench) note(format string, args ...any) {
	b.logf(format, args...)
	b.result.Notes = append(b.result.Notes, fmt.Sprintf(format, args...))
}

// findTools looks for the installed programs and builds the others to bin, as
// far as the peers need them.
func findTools(root, bin string, peerNames []string) (tools, missing map[string]string) {
	tools, missing = rig.Installed("nginx", "haproxy", "wrk")
	for _, t := range []struct{ name, dir, pkg string }{
		{"load", root, "./test/bench/load"},
		{"headgate", root, "./cmd/headgate"},
		{"floor", root, "./test/bench/floor"},
		{"caddy", filepath.Join(root, "test/bench/peers"), "github.com/caddyserver/caddy/v2/cmd/caddy"},
		{"reverseproxy", filepath.Join(root, "test/bench/peers"), "./reverseproxy"},
	} {
		if t.name != "load" && !slices.Contains(peerNames, t.name) {
			missing[t.name] = "not asked for"
			continue
		}
		path := filepath.Join(bin, t.name)
		if err := rig.Build(t.dir, t.pkg, path); err != nil {
			missing[t.name] = err.Error()
			continue
		}
		tools[t.name] = path
	}
	return tools, missing
}
