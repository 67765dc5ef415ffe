package ir

import (
	"errors"
	"fmt"
)

// Process is what a process has once, whatever it serves. Zero values mean what it
// was started with.
type Process struct {
	// Workers and Pinning are of the event loops. They count when a process starts:
	// see [ApplyResult.Restart].
	Workers int
	Pinning Pinning
	// MaxConnections is how many clients may be connected; while there are as many,
	// none is accepted.
	MaxConnections int64
	// MemoryLimit is in bytes: while live memory is close to it, no connection is
	// accepted.
	MemoryLimit int64
}

// Pinning says whether loops stay on one CPU each.
type Pinning uint8

// The ways of pinning. Zero means what the process was started with.
const (
	// PinPerCPU keeps each loop on a CPU of its own, as far as there are as many.
	PinPerCPU Pinning = iota + 1
	// PinOff leaves it to the kernel.
	PinOff
)

// String returns the name.
func (p Pinning) String() string {
	switch p {
	case PinPerCPU:
		return "PerCPU"
	case PinOff:
		return "Off"
	}
	return "unset"
}

func (p *Process) validate() error {
	switch {
	case p.Workers < 0 || p.MaxConnections < 0 || p.MemoryLimit < 0:
		return errors.New("a number of the process is negative")
	case p.Pinning > PinOff:
		return fmt.Errorf("pinning %d is unknown", p.Pinning)
	}
	return nil
}

func (w *digest) process(p *Process) {
	w.int(int64(p.Workers))
	w.num(uint64(p.Pinning))
	w.int(p.MaxConnections)
	w.int(p.MemoryLimit)
}
