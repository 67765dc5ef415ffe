//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// idleConns stays below the limit of 20,000 open files with an upstream
// connection for each, and below HAProxy's maxconn.
const idleConns = 9000

// memorySample is the memory that held or stalled connections cost a proxy.
type memorySample struct {
	Scenario string  `json:"scenario"`
	Peer     string  `json:"peer"`
	Conns    int64   `json:"connections"` // that were open at the end
	Before   float64 `json:"before_mib"`
	After    float64 `json:"after_mib"`      // the peak while they were held
	PerConn  float64 `json:"per_connection"` // bytes
	Moved    float64 `json:"moved_mib"`      // through all streams
	Errors   int64   `json:"errors"`
}

// runIdle measures idle keep-alive connections, plain and with TLS.
func (b *bench) runIdle() {
	for _, tls := range []bool{false, true} {
		name := "idle"
		if tls {
			name = "idle-tls"
		}
		for _, peerName := range fastPeers {
			if p, ok := b.peer(peerName); ok {
				b.keepMemory(b.measureIdle(name, p, tls))
			}
		}
	}
}

func (b *bench) measureIdle(name string, p peer, tls bool) (memorySample, error) {
	m := memorySample{Scenario: name, Peer: p.name}
	err := b.with(p, 1, func(proc *rig.Process) error {
		args := []string{"idle", "-addr", rig.Loopback(b.site.http), "-host", hostName, "-conns", fmt.Sprint(idleConns)}
		url := "http://" + rig.Loopback(b.site.http) + "/"
		if tls {
			args[2] = rig.Loopback(b.site.https)
			args = append(args, "-tls")
			url = "https://" + rig.Loopback(b.site.https) + "/"
		}
		// What the first requests cost once is not a connection's.
		if _, err := b.site.loader().Wrk(url, 1, 64, time.Second); err != nil {
			return err
		}
		return b.hold(proc, &m, args, 3*time.Second, func(first string) error {
			var h struct {
				Open       int64  `json:"open"`
				Errors     int64  `json:"errors"`
				FirstError string `json:"first_error"`
			}
			if err := json.Unmarshal([]byte(first), &h); err != nil {
				return err
			}
			if h.FirstError != "" {
				b.note("%s, %s: %s", name, p.name, h.FirstError)
			}
			m.Conns, m.Errors = h.Open, h.Errors
			return nil
		})
	})
	return m, err
}

// runStalled measures clients that read slowly, and uploads to a backend that
// does.
func (b *bench) runStalled() {
	for _, name := range []string{"stalled-read", "stalled-upload"} {
		for _, peerName := range fastPeers {
			if p, ok := b.peer(peerName); ok {
				b.keepMemory(b.measureStalled(name, p))
			}
		}
	}
}

const stalledStreams = 200

func (b *bench) measureStalled(name string, p peer) (memorySample, error) {
	m := memorySample{Scenario: name, Peer: p.name, Conns: stalledStreams}
	err := b.with(p, 1, func(proc *rig.Process) error {
		args := []string{"read", "-addr", rig.Loopback(b.site.http), "-host", hostName, "-conns", fmt.Sprint(stalledStreams)}
		if name == "stalled-upload" {
			args[0] = "write"
		}
		if _, err := b.site.loader().Wrk("http://"+rig.Loopback(b.site.http)+"/", 1, 64, time.Second); err != nil {
			return err
		}
		return b.hold(proc, &m, args, 15*time.Second, nil)
	})
	return m, err
}

// hold runs a load that keeps its connections until its input ends, and samples
// the proxy's memory meanwhile. With first, the load says on its first line
// that it is set up, and memory counts from then on, d later.
func (b *bench) hold(proc *rig.Process, m *memorySample, args []string, d time.Duration, first func(line string) error) error {
	time.Sleep(500 * time.Millisecond) // what the warm-up used comes back
	before, err := proc.Use()
	if err != nil {
		return err
	}
	load, err := b.site.loader().Start(args...)
	if err != nil {
		return err
	}
	defer load.Stop()
	if first != nil {
		line, err := load.Line(2 * time.Minute)
		if err != nil {
			return err
		}
		if err := first(line); err != nil {
			return err
		}
		time.Sleep(d)
		d = 0
	}
	var peak int64
	for end := time.Now().Add(d); ; time.Sleep(250 * time.Millisecond) {
		u, err := proc.Use()
		if err != nil {
			return err
		}
		peak = max(peak, u.RSS)
		if !time.Now().Before(end) {
			break
		}
	}
	load.Stdin.Close()
	line, err := load.Line(30 * time.Second)
	if err != nil {
		return err
	}
	var last struct {
		Open   *int64 `json:"open"`
		Bytes  int64  `json:"bytes"`
		Errors int64  `json:"errors"`
	}
	if err := json.Unmarshal([]byte(line), &last); err != nil {
		return err
	}
	if last.Open != nil {
		m.Conns = *last.Open
	}
	m.Errors = max(m.Errors, last.Errors)
	m.Moved = mib(last.Bytes)
	m.Before, m.After = mib(before.RSS), mib(peak)
	if m.Conns > 0 {
		m.PerConn = float64(peak-before.RSS) / float64(m.Conns)
	}
	return nil
}

func (b *bench) keepMemory(m memorySample, err error) {
	if err != nil {
		b.note("%s, %s: %v", m.Scenario, m.Peer, err)
		return
	}
	b.result.Memory = append(b.result.Memory, m)
	b.logf("%-14s %-14s %d connections: %.1f -> %.1f MiB, %.0f bytes each, %d errors",
		m.Scenario, m.Peer, m.Conns, m.Before, m.After, m.PerConn, m.Errors)
}
