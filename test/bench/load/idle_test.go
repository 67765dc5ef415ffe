//go:build linux

package main

import (
	"net"
	"net/http"
	"testing"
	"time"
)

func TestEnded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if ended(c) {
		t.Error("an open connection looks ended")
	}
	server.Close()
	for end := time.Now().Add(20 * time.Second); !ended(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed connection looks open")
		}
	}
}

func TestPause(t *testing.T) {
	for name, c := range map[string]struct {
		after    string
		heed     bool
		from, to time.Duration
	}{
		"told":            {"20", true, 20 * time.Second, 30 * time.Second},
		"does not heed":   {"20", false, time.Second / 2, 3 * time.Second / 2},
		"told nothing":    {"", true, time.Second / 2, 3 * time.Second / 2},
		"told nonsense":   {"soon", true, time.Second / 2, 3 * time.Second / 2},
		"told at once":    {"0", true, time.Second / 2, 3 * time.Second / 2},
		"told to give up": {"99999999999", true, time.Second / 2, 3 * time.Second / 2},
	} {
		if d := pause(http.Header{"Retry-After": {c.after}}, c.heed); d < c.from || d >= c.to {
			t.Errorf("%s: %v, want between %v and %v", name, d, c.from, c.to)
		}
	}
}
