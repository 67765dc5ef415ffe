//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	r := result{Samples: []sample{
		{Scenario: "a", Peer: "p", PerSecond: 300, P99: 1, Errors: 1, Requests: 10},
		{Scenario: "a", Peer: "p", PerSecond: 100, P99: 3, Requests: 20},
		{Scenario: "a", Peer: "p", PerSecond: 200, P99: 2, Errors: 2, Requests: 30},
		{Scenario: "a", Peer: "q", PerSecond: 1}, {Scenario: "b", Peer: "p", PerSecond: 2},
		{Scenario: "even", Peer: "p", PerSecond: 1}, {Scenario: "even", Peer: "p", PerSecond: 2},
	}}
	if m := r.median("a", "p"); m.PerSecond != 200 || m.P99 != 2 || m.Errors != 3 || m.Requests != 60 || m.Round != 3 {
		t.Errorf("median %+v", m)
	}
	if m := r.median("even", "p"); m.PerSecond != 1.5 {
		t.Errorf("median of two is %v", m.PerSecond)
	}
	if m := r.median("none", "p"); m.Round != 0 || m.PerSecond != 0 {
		t.Errorf("median of none %+v", m)
	}
}

func TestMarkdown(t *testing.T) {
	r := result{
		Versions: map[string]string{"headgate": "v1", "nginx": "nginx/1"},
		Skipped:  map[string]string{"caddy": "does not build"},
		Notes:    []string{"something\nbroke"},
		Samples: []sample{
			{Scenario: "keep-64", Peer: "headgate", PerSecond: 3000, CPU: 20},
			{Scenario: "keep-64", Peer: "nginx", PerSecond: 2000, CPU: 40},
		},
		Rates: []rateSample{
			{PeakOf: "nginx", Peer: "nginx", Rate: 1600, P99: 200},
			{PeakOf: "nginx", Peer: "headgate", Rate: 1600, P99: 100},
		},
		Memory: []memorySample{{Scenario: "idle", Peer: "nginx", Conns: 9000, PerConn: 521}},
		Hung:   []hungSample{{Peer: "headgate", Undisturbed: rateSample{P99: 100}, Disturbed: rateSample{P99: 150}}},
	}
	got := r.markdown()
	for _, want := range []string{
		"| nginx | nginx/1 |", "Skipped: caddy (does not build)", "- something broke",
		"| nginx | 2000 | 0 | 0 | 0 | 40.0 | 0.0 | 0 | 1.50 | 0.50 |",
		"| headgate | 3000 | 0 | 0 | 0 | 20.0 | 0.0 | 0 | 1.00 | 1.00 |",
		"| 80 % of nginx's peak: 1600/s | nginx | 0 | 0 | 200 | 0 | 0 | 0.0 | 0 | 0.50 |",
		"| nginx | 9000 | 0.0 | 0.0 | 521 | 0 |",
		"| headgate | 0 | 100 | 0 | 150 | 0 | 1.50 | 0 | 0.0 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "close:") {
		t.Error("a table for a scenario that was not measured")
	}
}

func TestParseStat(t *testing.T) {
	line := "4242 (a (b) c) S 1 4200 4200 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 12345 999 100 18446744073709551615 1"
	u, pgrp, err := parseStat(line)
	if err != nil || pgrp != 4200 || u.cpu != 2*time.Second || u.rss != 100*4096 {
		t.Errorf("%+v, %d, %v", u, pgrp, err)
	}
	for _, bad := range []string{"", "1 (x) S", "1 (x) S 1 a b c d e f g h i j k l m n o p q r s t u v w x"} {
		if _, _, err := parseStat(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseWrk(t *testing.T) {
	r, err := parseWrk("Running\nRESULT {\"requests\":10,\"micros\":1000000,\"bytes\":1,\"errors\":2,\"p50\":3,\"p99\":4,\"p999\":5}\nmore")
	if want := (wrkResult{Requests: 10, Micros: 1e6, Errors: 2, P50: 3, P99: 4, P999: 5}); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := parseWrk("unable to connect"); err == nil || !strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("error %v", err)
	}
}

func TestChoosePeers(t *testing.T) {
	tools := map[string]string{"nginx": "/nginx"}
	chosen, skipped, err := choosePeers([]string{"haproxy", "nginx"}, tools, map[string]string{"haproxy": "not installed"})
	if err != nil || len(chosen) != 1 || chosen[0].name != "nginx" || skipped["haproxy"] != "haproxy: not installed" {
		t.Errorf("%v, %v, %v", chosen, skipped, err)
	}
	if _, _, err := choosePeers([]string{"apache"}, tools, nil); err == nil {
		t.Error("an unknown peer was accepted")
	}
}

func TestBody(t *testing.T) {
	if n := len(body512()); n != 512 {
		t.Errorf("the body has %d bytes", n)
	}
}
