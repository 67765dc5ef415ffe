//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown renders the result as tables, one for each scenario.
func (r *result) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmark results\n\nMeasured %s on %d CPUs, Linux %s, by `go run ./test/bench`: medians of %d rounds of %s each, peers interleaved.\n"+
		"Load average %.2f before, %.2f after, %.2f at most meanwhile (the loader, the backend and the proxy alone make 2). "+
		"How it is measured, and what the figures can tell: see [DESIGN.md](../DESIGN.md).\n\n",
		r.Time, r.CPUs, r.Kernel, r.Rounds, r.Duration, r.Load[0], r.Load[1], r.highestLoad())
	fmt.Fprintf(&b, "| peer | version |\n| --- | --- |\n")
	for _, p := range peers {
		if v, ok := r.Versions[p.name]; ok {
			fmt.Fprintf(&b, "| %s | %s |\n", p.name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(&b, "\nSkipped: %s (%s).\n", name, r.Skipped[name])
	}
	for _, sc := range scenarios {
		r.scenarioTable(&b, sc)
	}
	r.rateTable(&b)
	r.memoryTable(&b)
	r.hungTable(&b)
	if len(r.Notes) > 0 {
		fmt.Fprintf(&b, "\n## What went wrong\n\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(strings.TrimSpace(n), "\n", " "))
		}
	}
	return b.String()
}

// highestLoad is the highest load average that a measurement began with.
func (r *result) highestLoad() float64 {
	highest := r.Load[0]
	for _, s := range r.Samples {
		highest = max(highest, s.Load)
	}
	return highest
}

func (r *result) scenarioTable(b *strings.Builder, sc scenario) {
	var rows []sample
	for _, p := range peers {
		if m := r.median(sc.name, p.name); m.Round > 0 {
			rows = append(rows, m)
		}
	}
	if len(rows) == 0 {
		return
	}
	own := r.median(sc.name, "headgate")
	fmt.Fprintf(b, "\n## %s: %s\n\n", sc.name, sc.title)
	fmt.Fprintf(b, "| peer | req/s | p50 us | p99 us | p99.9 us | CPU us/req | RSS MiB | errors | req/s: headgate / peer | CPU: headgate / peer |\n")
	fmt.Fprintf(b, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, m := range rows {
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f | %d | %s | %s |\n",
			m.Peer, m.PerSecond, m.P50, m.P99, m.P999, m.CPU, m.RSS, m.Errors, ratio(own.PerSecond, m.PerSecond), ratio(own.CPU, m.CPU))
	}
}

func (r *result) rateTable(b *strings.Builder) {
	if len(r.Rates) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## rate: latency at 80 %% of a peer's peak, open loop, 64 connections, one worker\n\n")
	fmt.Fprintf(b, "| rate | peer | req/s | p50 us | p99 us | p99.9 us | max us | CPU us/req | errors | p99: headgate / peer |\n")
	fmt.Fprintf(b, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, of := range fastPeers {
		own := r.rateMedian(of, "headgate")
		for _, p := range peers {
			m := r.rateMedian(of, p.name)
			if m.Rate == 0 {
				continue
			}
			fmt.Fprintf(b, "| 80 %% of %s's peak: %.0f/s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %d | %s |\n",
				of, m.Rate, m.Peer, m.Achieved, m.P50, m.P99, m.P999, m.Max, m.CPU, m.Errors+m.Unsent, ratio(own.P99, m.P99))
		}
	}
}

func (r *result) memoryTable(b *strings.Builder) {
	titles := map[string]string{
		"idle":           "idle: keep-alive connections that have had one request",
		"idle-tls":       "idle-tls: the same with TLS",
		"stalled-read":   "stalled-read: 200 clients read an answer of 256 MiB at 10 KB/s",
		"stalled-upload": "stalled-upload: 200 clients send 256 MiB to a backend that reads 10 KB/s",
	}
	for _, name := range []string{"idle", "idle-tls", "stalled-read", "stalled-upload"} {
		var rows []memorySample
		for _, m := range r.Memory {
			if m.Scenario == name {
				rows = append(rows, m)
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n\n| peer | connections | RSS before, MiB | RSS with them, MiB | bytes per connection | errors |\n", titles[name])
		fmt.Fprintf(b, "| --- | ---: | ---: | ---: | ---: | ---: |\n")
		for _, m := range rows {
			fmt.Fprintf(b, "| %s | %d | %.1f | %.1f | %.0f | %d |\n", m.Peer, m.Conns, m.Before, m.After, m.PerConn, m.Errors)
		}
	}
}

func (r *result) hungTable(b *strings.Builder) {
	if len(r.Hung) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## hung: a healthy backend at %d requests/s beside %d requests to one that hangs\n\n", hungRate, hungRequests)
	fmt.Fprintf(b, "| peer | p50 us | p99 us | p50 beside, us | p99 beside, us | errors beside | p99: beside / undisturbed | refused | RSS MiB |\n")
	fmt.Fprintf(b, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, h := range r.Hung {
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %.0f | %.0f | %d | %s | %d | %.1f |\n", h.Peer, h.Undisturbed.P50, h.Undisturbed.P99,
			h.Disturbed.P50, h.Disturbed.P99, h.Disturbed.Errors+h.Disturbed.Unsent, ratio(h.Disturbed.P99, h.Undisturbed.P99), h.Refused, h.RSS)
	}
}

// ratio prints a/b, or nothing when one of them was not measured.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}
