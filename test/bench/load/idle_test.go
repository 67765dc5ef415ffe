//go:build linux

package main

import (
	"net"
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
	for end := time.Now().Add(5 * time.Second); !ended(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed connection looks open")
		}
	}
}
