//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// commands are the subcommands. Each parses its own arguments.
var commands = map[string]func(args []string) error{
	"rate":      runRate,
	"handshake": runHandshake,
	"idle":      runIdle,
	"read":      runSlowRead,
	"write":     runUpload,
	"hold":      runHold,
	"serve":     runServe,
	"work":      runWork,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: load rate|handshake|idle|read|write|hold|serve|work [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "load %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// report prints v as one line of JSON.
func report(v any) error {
	return json.NewEncoder(os.Stdout).Encode(v)
}
