//go:build linux

package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// wrkScript makes wrk print its summary as JSON, behind a word to find it by.
const wrkScript = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"micros":%d,"bytes":%d,"errors":%d,"p50":%d,"p99":%d,"p999":%d}\n',
    summary.requests, summary.duration, summary.bytes, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
`

// Loader drives a proxy from a set of CPUs.
type Loader struct {
	// Tools are the paths of the programs wrk and load.
	Tools map[string]string
	// Dir is scratch.
	Dir string
	// Host is what all requests ask for.
	Host string
	// CPUs are those that the load may use; none means any.
	CPUs []int
}

// WrkResult is wrk's summary; durations are in microseconds.
type WrkResult struct {
	Requests uint64  `json:"requests"`
	Micros   float64 `json:"micros"`
	Errors   uint64  `json:"errors"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	P999     float64 `json:"p999"`
}

// Threads is how many threads a loader takes: one for each CPU that it may use.
func (l *Loader) Threads() int {
	if len(l.CPUs) == 0 {
		return 2
	}
	return len(l.CPUs)
}

// Wrk drives a URL with keep-alive connections in a closed loop.
func (l *Loader) Wrk(url string, threads, conns int, d time.Duration, headers ...string) (WrkResult, error) {
	script := filepath.Join(l.Dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o644); err != nil {
		return WrkResult{}, err
	}
	args := []string{
		fmt.Sprintf("-t%d", threads), fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%.0fs", max(d.Seconds(), 1)),
		"--timeout", "10s", "-s", script, "-H", "Host: " + l.Host}
	for _, h := range headers {
		args = append(args, "-H", h)
	}
	p, err := Launch(l.CPUs, l.Tools["wrk"], append(args, url)...)
	if err != nil {
		return WrkResult{}, err
	}
	select {
	case <-p.Done:
	case <-time.After(d + 30*time.Second):
		p.Stop()
		return WrkResult{}, fmt.Errorf("wrk did not end: %s", p.Out)
	}
	return parseWrk(p.Out.String() + p.Messages())
}

// parseWrk finds the script's line in wrk's output.
func parseWrk(out string) (WrkResult, error) {
	_, line, found := strings.Cut(out, "RESULT ")
	if !found {
		return WrkResult{}, fmt.Errorf("wrk: %s", strings.TrimSpace(out))
	}
	line, _, _ = strings.Cut(line, "\n")
	var r WrkResult
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return r, fmt.Errorf("wrk: %q: %w", line, err)
	}
	return r, nil
}

// Run runs one of the load tool's subcommands to its end, which must come within
// d and half a minute, and decodes its report.
func (l *Loader) Run(d time.Duration, into any, args ...string) error {
	p, err := l.Start(args...)
	if err != nil {
		return err
	}
	defer p.Stop()
	line, err := p.Line(d + 30*time.Second)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), into)
}

// Start starts one of the load tool's subcommands.
func (l *Loader) Start(args ...string) (*Process, error) {
	return Launch(l.CPUs, l.Tools["load"], args...)
}
