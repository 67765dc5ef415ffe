//go:build linux

// Command placement measures the reactor's ways of placing connections on
// loops: hand-off by the acceptor, round-robin or to the least loaded loop, and
// one SO_REUSEPORT listener per loop. A minimal HTTP responder runs in a child
// process, wrk drives it, with keep-alive connections and with one connection
// per request. All combinations run one after the other in each round, so that
// the machine's moods hit all alike; the table has the medians of the rounds
// and their ratio to the first placement.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/dataplane/reactor"
)

func main() {
	serve := flag.String("serve", "", "be the responder: a placement's name (used for the child process)")
	workers := flag.Int("workers", 1, "loops of the responder")
	rounds := flag.Int("rounds", 3, "rounds over all combinations")
	duration := flag.Duration("duration", 5*time.Second, "length of a run")
	connections := flag.Int("connections", 64, "connections of wrk")
	raw := flag.Bool("json", false, "print all runs as JSON, too")
	flag.Parse()
	var err error
	if *serve != "" {
		err = respond(*serve, *workers)
	} else {
		err = measure(*rounds, *duration, *connections, *raw)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

var placements = []reactor.Placement{reactor.RoundRobin, reactor.LeastLoaded, reactor.ReusePort}

// respond serves until SIGTERM. It prints its address.
func respond(name string, workers int) error {
	i := slices.IndexFunc(placements, func(p reactor.Placement) bool { return p.String() == name })
	if i < 0 {
		return fmt.Errorf("unknown placement %q", name)
	}
	r, err := reactor.New(reactor.Options{Workers: workers, Placement: placements[i]})
	if err != nil {
		return err
	}
	ln, err := r.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*reactor.Loop, *reactor.Conn) reactor.Handler { return new(responder) })
	if err != nil {
		return errors.Join(err, r.Close())
	}
	fmt.Println(ln.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	return r.Close()
}

const (
	endOfHead   = "\r\n\r\n"
	closeHeader = "\r\nConnection: close\r\n"
	answer      = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nhello, world\n"
	lastAnswer  = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13" + closeHeader + "\r\nhello, world\n"
)

// responder answers each head. It knows as much HTTP as wrk speaks.
type responder struct {
	matched int // bytes of endOfHead that the last read ended with
	closing bool
}

func (h *responder) OnRead(c *reactor.Conn, p []byte) {
	if len(p) == 0 {
		c.Close()
		return
	}
	h.closing = h.closing || strings.Contains(string(p), closeHeader)
	for _, b := range p {
		switch {
		case b == endOfHead[h.matched]:
			h.matched++
		case b == '\r':
			h.matched = 1
		default:
			h.matched = 0
		}
		if h.matched == len(endOfHead) {
			h.matched = 0
			if h.closing {
				c.Write([]byte(lastAnswer))
				c.Close()
				return
			}
			c.Write([]byte(answer))
		}
	}
}

func (h *responder) OnDrained(*reactor.Conn)      {}
func (h *responder) OnClose(*reactor.Conn, error) {}

// run is the outcome of one run.
type run struct {
	Round     int
	Workers   int
	Load      string
	Placement string
	PerSecond float64 // requests
	CPUMicros float64 // of the responder, per request
	P50, P99  time.Duration
	Errors    int
}

var loads = []struct {
	name   string
	header string
}{
	{"keep-alive", ""},
	{"one connection per request", "Connection: close"},
}

func measure(rounds int, duration time.Duration, connections int, raw bool) error {
	var runs []run
	for round := range rounds {
		for workers := 1; workers <= 2; workers++ {
			for _, load := range loads {
				for _, p := range placements {
					one, err := once(p, workers, load.header, duration, connections)
					if err != nil {
						return fmt.Errorf("%v, %s: %w", p, load.name, err)
					}
					one.Round, one.Load = round, load.name
					runs = append(runs, one)
					fmt.Fprintf(os.Stderr, "%+v\n", one)
				}
			}
		}
	}
	if raw {
		if err := json.NewEncoder(os.Stdout).Encode(runs); err != nil {
			return err
		}
	}
	table(runs)
	return nil
}

// once runs a responder and wrk against it.
func once(p reactor.Placement, workers int, header string, duration time.Duration, connections int) (run, error) {
	self, err := os.Executable()
	if err != nil {
		return run{}, err
	}
	server := exec.Command(self, "-serve", p.String(), "-workers", strconv.Itoa(workers))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return run{}, err
	}
	if err := server.Start(); err != nil {
		return run{}, err
	}
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		return run{}, errors.Join(fmt.Errorf("responder's address: %w", err), server.Process.Kill(), server.Wait())
	}
	args := []string{"-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", max(1, int(duration.Seconds()))), "--latency"}
	if header != "" {
		args = append(args, "-H", header)
	}
	report, wrkErr := exec.Command("wrk", append(args, "http://"+addr+"/")...).CombinedOutput()
	stopErr := server.Process.Signal(syscall.SIGTERM)
	waitErr := server.Wait()
	if err := errors.Join(wrkErr, stopErr, waitErr); err != nil {
		return run{}, fmt.Errorf("%w\n%s", err, report)
	}
	one, err := parse(string(report))
	if err != nil {
		return run{}, fmt.Errorf("%w in\n%s", err, report)
	}
	requests := one.PerSecond * duration.Seconds()
	cpu := server.ProcessState.UserTime() + server.ProcessState.SystemTime()
	one.CPUMicros = float64(cpu.Microseconds()) / requests
	one.Placement, one.Workers = p.String(), workers
	return one, nil
}

// parse reads wrk's report.
func parse(report string) (run, error) {
	var one run
	for _, f := range []struct {
		pattern string
		set     func(string) error
	}{
		{`Requests/sec:\s+([\d.]+)`, func(s string) (err error) { one.PerSecond, err = strconv.ParseFloat(s, 64); return err }},
		{`\s50%\s+([\d.]+[a-z]+)`, func(s string) (err error) { one.P50, err = time.ParseDuration(s); return err }},
		{`\s99%\s+([\d.]+[a-z]+)`, func(s string) (err error) { one.P99, err = time.ParseDuration(s); return err }},
	} {
		m := regexp.MustCompile(f.pattern).FindStringSubmatch(report)
		if m == nil {
			return run{}, fmt.Errorf("no match for %s", f.pattern)
		}
		if err := f.set(m[1]); err != nil {
			return run{}, err
		}
	}
	if m := regexp.MustCompile(`Socket errors: (.*)`).FindStringSubmatch(report); m != nil {
		for _, s := range regexp.MustCompile(`\d+`).FindAllString(m[1], -1) {
			n, err := strconv.Atoi(s)
			if err != nil {
				return run{}, err
			}
			one.Errors += n
		}
	}
	return one, nil
}

// table prints the medians as Markdown.
func table(runs []run) {
	fmt.Println("| workers | load | placement | req/s | ratio | spread | CPU us/request | ratio | p50 | p99 | errors |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for workers := 1; workers <= 2; workers++ {
		for _, load := range loads {
			var first run
			for _, p := range placements {
				var rate, cpu, p50, p99 []float64
				failed := 0
				for _, one := range runs {
					if one.Workers == workers && one.Load == load.name && one.Placement == p.String() {
						rate = append(rate, one.PerSecond)
						cpu = append(cpu, one.CPUMicros)
						p50 = append(p50, float64(one.P50))
						p99 = append(p99, float64(one.P99))
						failed += one.Errors
					}
				}
				m := run{PerSecond: median(rate), CPUMicros: median(cpu)}
				if first.PerSecond == 0 {
					first = m
				}
				fmt.Printf("| %d | %s | %s | %.0f | %.2f | %.0f-%.0f | %.1f | %.2f | %v | %v | %d |\n", workers, load.name, p,
					m.PerSecond, m.PerSecond/first.PerSecond, slices.Min(rate), slices.Max(rate), m.CPUMicros, m.CPUMicros/first.CPUMicros,
					time.Duration(median(p50)).Round(time.Microsecond), time.Duration(median(p99)).Round(time.Microsecond), failed)
			}
		}
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
