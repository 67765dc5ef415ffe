//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/dataplane/queueing"
	"github.com/headgate/headgate/test/bench/rig"
)

// memorySample is the memory of a proxy with requests under way that are not
// answered.
type memorySample struct {
	Peer    string  `json:"peer"`
	Workers int     `json:"workers"`
	Wanted  int     `json:"wanted"` // requests under way
	Active  int     `json:"active"` // as the upstream counts
	RSS     float64 `json:"rss_mib"`
	PSS     float64 `json:"pss_mib"`
	// Calibration tells that the sample gives the constants of Eq. 12 and is in no
	// table.
	Calibration bool `json:"calibration,omitempty"`
}

// The numbers of active connections of Table 4, as far as 20,000 descriptors
// allow: each takes two. Eq. 12 gets its constants from others than these.
var (
	activeCounts = []int{100, 1000, 5000, 9000}
	calibrated   = [2]int{2500, 7500}
)

// settled is the age of a process at which its memory is measured, at least: the
// gateway gives back what its start left behind when it has had no new
// configuration for ten seconds.
const settled = 13 * time.Second

// preforkMost is how many processes are tried: a thousand take ten seconds to
// start.
const preforkMost = 1000

// runTable4 measures the gateway's memory in several runs, since it depends on
// when its collector was last by, and that of the others once.
func (l *lab) runTable4() error {
	for run := range l.opt.failureRuns {
		if err := l.memoryRun(run); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) memoryRun(run int) error {
	if p, ok := l.peer(headgate); ok {
		for _, c := range []struct{ workers, n int }{{1, 0}, {2, 0}, {1, calibrated[0]}, {1, calibrated[1]}} {
			s, err := l.memory(p, c.workers, c.n)
			if err != nil {
				return err
			}
			s.Calibration = true
			l.keepMemory(s)
		}
	}
	for _, n := range activeCounts {
		for _, p := range l.some(headgate, nginx, apache, prefork) {
			if p.name == prefork && n > preforkMost || p.name != headgate && run > 0 {
				continue
			}
			s, err := l.memory(p, 1, n)
			if err != nil {
				l.note("table 4, %s with %d: %v", p.name, n, err)
				continue
			}
			l.keepMemory(s)
		}
	}
	return nil
}

func (l *lab) keepMemory(s memorySample) {
	l.result.Memory = append(l.result.Memory, s)
	l.logf("table4 %-14s %d workers %5d active: %7.1f MiB, %7.1f proportional", s.Peer, s.Workers, s.Active, s.RSS, s.PSS)
}

// memory measures a proxy with n requests under way.
func (l *lab) memory(p peer, workers, n int) (memorySample, error) {
	m := memorySample{Peer: p.name, Workers: workers, Wanted: n}
	if err := l.startUpstreams(1); err != nil { // the load of two workers needs no CPUs here
		return m, err
	}
	if err := l.control(rig.Workload{Mean: time.Millisecond}); err != nil {
		return m, err
	}
	s := setup{
		workers: workers, timeout: 120 * time.Second, threads: n + 100,
		routes: []route{{name: "fast", prefix: "/", port: l.fast}, {name: "work", prefix: "/hung", port: l.work}},
		// Nobody may be cut or held here.
		flags: []string{"--pool-size", "20000", "--response-timeout", "120s", "--adaptive-timeout", "off", "--trusted-cidr", "127.0.0.0/8"},
	}
	placed := l.placed
	l.placed = workers // with would move the upstreams
	defer func() { l.placed = placed }()
	err := l.with(p, s, func(proc *rig.Process) error {
		began := time.Now()
		if _, err := l.load.Wrk("http://"+rig.Loopback(l.ports.http)+"/", 1, conns, time.Second); err != nil { // what the first requests cost once
			return err
		}
		if err := l.control(rig.Workload{Hang: true}); err != nil {
			return err
		}
		defer l.control(rig.Workload{Mean: time.Millisecond})
		if _, err := l.stats(); err != nil { // counts begin anew
			return err
		}
		if n > 0 {
			load, err := l.load.Start("hold", "-addr", rig.Loopback(l.ports.http), "-host", hostName, "-path", "/hung", "-conns", strconv.Itoa(n))
			if err != nil {
				return err
			}
			defer load.Stop()
			if _, err := load.Line(90 * time.Second); err != nil {
				return err
			}
			if m.Active, err = l.awaitActive(n); err != nil {
				return err
			}
		}
		time.Sleep(max(2*time.Second, settled-time.Since(began))) // the collector, if any, has been by
		u, err := proc.Use()
		if err != nil {
			return err
		}
		pss, err := proc.PSS()
		m.RSS, m.PSS = mib(u.RSS), mib(pss)
		return err
	})
	return m, err
}

// awaitActive waits until the upstream has n requests, or has had no further one
// for a while.
func (l *lab) awaitActive(n int) (int, error) {
	most, quiet := 0, 0
	for most < n && quiet < 10 {
		time.Sleep(300 * time.Millisecond)
		s, err := l.stats()
		if err != nil {
			return 0, err
		}
		if quiet++; s.Most > most {
			most, quiet = s.Most, 0
		}
	}
	if most < n*9/10 {
		return most, fmt.Errorf("only %d of %d requests came to the upstream", most, n)
	}
	return most, nil
}

// constants are those of Eq. 12, measured on the gateway apart from the rows of
// the table: M_thread from one worker more without connections, M_req from two
// numbers of connections, and M_base from what is left. Without connections the
// process has memory that it does not use, which the first ones take; that is
// why M_base is not taken there.
func (r *result) constants() (m queueing.Memory, ok bool) {
	const unit = 1 << 20
	at := func(workers, n int) memorySample {
		s, _ := r.memoryOf(func(s memorySample) bool {
			return s.Calibration && s.Peer == headgate && s.Workers == workers && s.Wanted == n
		})
		return s
	}
	one, two := at(1, 0), at(2, 0)
	few, many := at(1, calibrated[0]), at(1, calibrated[1])
	if one.RSS == 0 || two.RSS == 0 || few.Active == 0 || many.Active <= few.Active {
		return m, false
	}
	m.Thread = int64(max(two.RSS-one.RSS, 0) * unit)
	each := max(many.RSS-few.RSS, 0) * unit / float64(many.Active-few.Active)
	m.Request = int64(each)
	m.Base = int64(few.RSS*unit-each*float64(few.Active)) - m.Thread
	return m, m.Base > 0
}

// memory returns a row of the table; false when there is none.
func (r *result) memory(name string, n int) (memorySample, bool) {
	return r.memoryOf(func(s memorySample) bool { return s.Peer == name && s.Wanted == n && !s.Calibration })
}

// memoryOf returns the medians of the samples that are chosen; false when there
// are none.
func (r *result) memoryOf(chosen func(memorySample) bool) (m memorySample, ok bool) {
	for _, s := range r.Memory {
		if chosen(s) {
			m, ok = s, true
		}
	}
	m.RSS = median(r.Memory, chosen, func(s memorySample) float64 { return s.RSS })
	m.PSS = median(r.Memory, chosen, func(s memorySample) float64 { return s.PSS })
	return m, ok
}

// decodeLine decodes a line of JSON from the load tool.
func decodeLine(line string, into any) error {
	if err := json.Unmarshal([]byte(line), into); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	return nil
}
