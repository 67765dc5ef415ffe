//go:build linux

package rig

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := "4242 (a (b) c) S 1 4200 4200 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 12345 999 100 18446744073709551615 1"
	u, pgrp, err := parseStat(line)
	if err != nil || pgrp != 4200 || u.CPU != 2*time.Second || u.RSS != 100*4096 {
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
	if want := (WrkResult{Requests: 10, Micros: 1e6, Errors: 2, P50: 3, P99: 4, P999: 5}); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := parseWrk("unable to connect"); err == nil || !strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("error %v", err)
	}
}

func TestBody(t *testing.T) {
	if n := len(Body512()); n != 512 {
		t.Errorf("the body has %d bytes", n)
	}
}

func TestProcess(t *testing.T) {
	p, err := Launch(nil, "sh", "-c", "echo one; echo two; read line") // it stays a shell: a program that is being replaced has no memory
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		if line, err := p.Line(20 * time.Second); err != nil || line != want {
			t.Errorf("line %q, %v; want %q", line, err, want)
		}
	}
	if u, err := p.Use(); err != nil || u.RSS == 0 || u.CPU == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if pss, err := p.PSS(); err != nil || pss == 0 {
		t.Errorf("proportional share %d, %v", pss, err)
	}
	p.Stop()
	if _, err := p.Use(); err == nil {
		t.Error("an ended process uses something")
	}
	if _, err := p.Line(time.Second); err == nil {
		t.Error("an ended process printed a line")
	}
}

func TestInstalled(t *testing.T) {
	tools, missing := Installed("sh", "no-such-program")
	if tools["sh"] == "" || missing["no-such-program"] == "" || len(tools) != 1 || len(missing) != 1 {
		t.Errorf("%v, %v", tools, missing)
	}
}

func TestErrorRate(t *testing.T) {
	for _, c := range []struct {
		r    RateResult
		want float64
	}{
		{RateResult{}, 0}, {RateResult{Requests: 10}, 0}, {RateResult{Errors: 3}, 1}, {RateResult{Requests: 90, Errors: 4, Unsent: 6}, 0.1},
	} {
		if got := c.r.ErrorRate(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", c.r, got, c.want)
		}
	}
}
