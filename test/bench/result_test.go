//go:build linux

package main

import (
	"strings"
	"testing"
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
