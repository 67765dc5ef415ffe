//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// scenario is one closed-loop load. Each is run with every peer that it names,
// round by round.
type scenario struct {
	name  string
	title string
	// workers of the proxy. With one, the proxy has a CPU of its own.
	workers int
	peers   []string
	run     func(b *bench, d time.Duration) (sample, error)
}

// Which peers a scenario has by default: slow ones are left out where the field
// is clear without them, to keep the whole run below 15 minutes.
var (
	everyPeer = []string{"headgate", "floor", "nginx", "nginx-default", "haproxy", "caddy", "reverseproxy"}
	fastPeers = []string{"headgate", "nginx", "haproxy"}
)

var scenarios = []scenario{
	{"keep-64", "512 B JSON, 64 keep-alive connections", 1, everyPeer, keepAlive("/", 64)},
	{"keep-1000", "512 B JSON, 1,000 keep-alive connections", 1, []string{"headgate", "floor", "nginx", "haproxy"}, keepAlive("/", 1000)},
	{"close", "512 B JSON, one connection per request, 64 at once", 1, []string{"headgate", "nginx", "nginx-default", "haproxy", "caddy"}, keepAlive("/", 64, "Connection: close")},
	{"64k", "64 KiB answers, 64 keep-alive connections", 1, fastPeers, keepAlive("/64k", 64)},
	{"1m", "1 MiB answers, 64 keep-alive connections", 1, fastPeers, keepAlive("/1m", 64)},
	{"https-64", "HTTPS, 512 B JSON, 64 keep-alive connections", 1, []string{"headgate", "nginx", "haproxy", "caddy"}, keepAliveTLS("/", 64)},
	{"handshake", "HTTPS, a full handshake for each request, 16 at once", 1, fastPeers, handshakes(16)},
	{"keep-64-w2", "512 B JSON, 64 keep-alive connections, two workers, nothing pinned", 2, fastPeers, keepAlive("/", 64)},
	{"close-w2", "512 B JSON, one connection per request, two workers, nothing pinned", 2, fastPeers, keepAlive("/", 64, "Connection: close")},
	{"https-64-w2", "HTTPS, 512 B JSON, 64 keep-alive connections, two workers, nothing pinned", 2, fastPeers, keepAliveTLS("/", 64)},
}

// sample is one measurement of one peer. Durations are in microseconds.
type sample struct {
	Scenario  string  `json:"scenario"`
	Peer      string  `json:"peer"`
	Round     int     `json:"round"`
	Requests  uint64  `json:"requests"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	CPU       float64 `json:"cpu_us_per_request"` // user and system time of the proxy's processes
	RSS       float64 `json:"rss_mib"`            // of the proxy's processes, at the end
	Errors    uint64  `json:"errors"`
	Load      float64 `json:"load_average"` // of the machine, before
}

func keepAlive(path string, conns int, headers ...string) func(*bench, time.Duration) (sample, error) {
	return func(b *bench, d time.Duration) (sample, error) {
		return b.wrk("http://"+rig.Loopback(b.site.http)+path, conns, d, headers...)
	}
}

func keepAliveTLS(path string, conns int) func(*bench, time.Duration) (sample, error) {
	return func(b *bench, d time.Duration) (sample, error) {
		return b.wrk("https://"+rig.Loopback(b.site.https)+path, conns, d)
	}
}

// wrk measures with wrk.
func (b *bench) wrk(url string, conns int, d time.Duration, headers ...string) (sample, error) {
	r, err := b.site.loader().Wrk(url, b.site.loader().Threads(), conns, d, headers...)
	return sample{Requests: r.Requests, PerSecond: float64(r.Requests) / r.Micros * 1e6, P50: r.P50, P99: r.P99, P999: r.P999, Errors: r.Errors}, err
}

func handshakes(conns int) func(*bench, time.Duration) (sample, error) {
	return func(b *bench, d time.Duration) (sample, error) {
		var r struct {
			PerSecond  float64 `json:"per_second"`
			Handshakes uint64  `json:"handshakes"`
			Errors     uint64  `json:"errors"`
			FirstError string  `json:"first_error"`
			P50        float64 `json:"p50_us"`
			P99        float64 `json:"p99_us"`
			P999       float64 `json:"p999_us"`
		}
		err := b.site.loader().Run(d, &r, "handshake", "-addr", rig.Loopback(b.site.https), "-host", hostName,
			"-conns", fmt.Sprint(conns), "-duration", d.String())
		if r.FirstError != "" {
			b.note("handshake: %s", r.FirstError)
		}
		return sample{Requests: r.Handshakes, PerSecond: r.PerSecond, P50: r.P50, P99: r.P99, P999: r.P999, Errors: r.Errors}, err
	}
}

// measure starts a peer, warms it up, runs the load, and stops it.
func (b *bench) measure(p peer, sc scenario, round int) (sample, error) {
	var s sample
	err := b.with(p, sc.workers, func(proc *rig.Process) error {
		warm, err := sc.run(b, time.Second)
		if err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
		if warm.Requests == 0 {
			return fmt.Errorf("warm-up: nothing was answered, %d errors", warm.Errors)
		}
		load := rig.LoadAverage()
		before, err := proc.Use()
		if err != nil {
			return err
		}
		if s, err = sc.run(b, b.duration); err != nil {
			return err
		}
		after, err := proc.Use()
		if err != nil {
			return err
		}
		s.Scenario, s.Peer, s.Round, s.Load = sc.name, p.name, round, load
		s.CPU = perRequest(after.CPU-before.CPU, s.Requests)
		s.RSS = mib(after.RSS)
		return nil
	})
	return s, err
}

// with runs f while the peer runs.
func (b *bench) with(p peer, workers int, f func(*rig.Process) error) error {
	proxyCPUs, loadCPUs := b.placement(workers)
	if b.backendWorkers != workers {
		if err := b.site.startBackends(workers, loadCPUs); err != nil {
			return err
		}
		b.backendWorkers = workers
	}
	proc, err := p.start(b.site, workers, proxyCPUs)
	if err != nil {
		return err
	}
	defer proc.Stop()
	if err := proc.AwaitPort(rig.Loopback(b.site.http)); err != nil {
		return err
	}
	return f(proc)
}

// placement puts a proxy with one worker on the first CPU and the load on the
// rest. With more workers, or a single CPU, nothing is bound.
func (b *bench) placement(workers int) (proxy, load []int) {
	if workers > 1 || b.cpus < 2 {
		return nil, nil
	}
	for cpu := 1; cpu < b.cpus; cpu++ {
		load = append(load, cpu)
	}
	return []int{0}, load
}

// runScenario measures every chosen peer of a scenario once. The order turns by
// one place with each round, so that none is always the first.
func (b *bench) runScenario(sc scenario, round int) {
	var chosen []peer
	for _, p := range b.peers {
		if slices.Contains(sc.peers, p.name) || b.every && (p.name != "floor" || sc.name == "keep-64") {
			chosen = append(chosen, p)
		}
	}
	for i := range chosen {
		p := chosen[(i+round)%len(chosen)]
		s, err := b.measure(p, sc, round)
		if err != nil {
			b.note("%s, %s: %v", sc.name, p.name, err)
			continue
		}
		b.result.Samples = append(b.result.Samples, s)
		b.logf("%-12s round %d %-14s %8.0f req/s  p99 %7.0f us  %6.1f us CPU  %d errors",
			sc.name, round+1, p.name, s.PerSecond, s.P99, s.CPU, s.Errors)
	}
}

func perRequest(cpu time.Duration, requests uint64) float64 {
	if requests == 0 {
		return 0
	}
	return float64(cpu.Microseconds()) / float64(requests)
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
