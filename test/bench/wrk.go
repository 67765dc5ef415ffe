//go:build linux

package main

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

// wrkResult is wrk's summary; durations are in microseconds.
type wrkResult struct {
	Requests uint64  `json:"requests"`
	Micros   float64 `json:"micros"`
	Errors   uint64  `json:"errors"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	P999     float64 `json:"p999"`
}

// wrk drives a URL with keep-alive connections in a closed loop.
func (s *site) wrk(url string, threads, conns int, d time.Duration, headers ...string) (wrkResult, error) {
	script := filepath.Join(s.dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o644); err != nil {
		return wrkResult{}, err
	}
	args := []string{
		fmt.Sprintf("-t%d", threads), fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%.0fs", max(d.Seconds(), 1)),
		"--timeout", "10s", "-s", script, "-H", "Host: " + hostName}
	for _, h := range headers {
		args = append(args, "-H", h)
	}
	p, err := launch(s.loadCPUs, s.tools["wrk"], append(args, url)...)
	if err != nil {
		return wrkResult{}, err
	}
	select {
	case <-p.done:
	case <-time.After(d + 30*time.Second):
		p.stop()
		return wrkResult{}, fmt.Errorf("wrk did not end: %s", p.out)
	}
	return parseWrk(p.out.String() + p.messages())
}

// parseWrk finds the script's line in wrk's output.
func parseWrk(out string) (wrkResult, error) {
	_, line, found := strings.Cut(out, "RESULT ")
	if !found {
		return wrkResult{}, fmt.Errorf("wrk: %s", strings.TrimSpace(out))
	}
	line, _, _ = strings.Cut(line, "\n")
	var r wrkResult
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return r, fmt.Errorf("wrk: %q: %w", line, err)
	}
	return r, nil
}

// loadTool runs one of load's subcommands to its end and decodes its report.
func (s *site) loadTool(d time.Duration, into any, args ...string) error {
	p, err := launch(s.loadCPUs, s.tools["load"], args...)
	if err != nil {
		return err
	}
	defer p.stop()
	line, err := p.line(d + 30*time.Second)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), into)
}
