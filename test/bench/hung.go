//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// hungSample is what 5,000 requests to a backend that hangs do to another one.
type hungSample struct {
	Peer        string     `json:"peer"`
	Undisturbed rateSample `json:"undisturbed"`
	Disturbed   rateSample `json:"disturbed"`
	Refused     int64      `json:"refused"` // of the requests to the backend that hangs
	RSS         float64    `json:"rss_mib"` // meanwhile
}

const (
	hungRequests = 5000
	hungRate     = 2000 // requests per second to the healthy backend
)

func (b *bench) runHung() {
	for _, name := range fastPeers {
		p, ok := b.peer(name)
		if !ok {
			continue
		}
		s, err := b.measureHung(p)
		if err != nil {
			b.note("hung, %s: %v", p.name, err)
			continue
		}
		b.result.Hung = append(b.result.Hung, s)
		b.logf("hung         %-14s healthy p99 %.0f us undisturbed, %.0f us beside %d hung requests; %d refused",
			p.name, s.Undisturbed.P99, s.Disturbed.P99, hungRequests, s.Refused)
	}
}

func (b *bench) measureHung(p peer) (hungSample, error) {
	s := hungSample{Peer: p.name}
	err := b.with(p, 1, func(proc *rig.Process) error {
		var err error
		if s.Undisturbed, err = b.openLoop("/", hungRate, time.Second); err != nil {
			return err
		}
		load, err := b.site.loader().Start("hold", "-addr", rig.Loopback(b.site.http), "-host", hostName, "-conns", fmt.Sprint(hungRequests))
		if err != nil {
			return err
		}
		defer load.Stop()
		if _, err := load.Line(time.Minute); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // accepting 5,000 connections is not what is measured
		if s.Disturbed, err = b.openLoop("/", hungRate, time.Second); err != nil {
			return err
		}
		u, err := proc.Use()
		if err != nil {
			return err
		}
		s.RSS = mib(u.RSS)
		load.Stdin.Close()
		line, err := load.Line(30 * time.Second)
		if err != nil {
			return err
		}
		var counts struct {
			Refused int64 `json:"refused"`
		}
		err = json.Unmarshal([]byte(line), &counts)
		s.Refused = counts.Refused
		return err
	})
	return s, err
}
