//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"
)

// Errors that the reactor itself gives to [Handler.OnClose] or returns. Errors
// of the kernel arrive wrapped in *os.SyscallError, so that errors.Is finds the
// errno.
var (
	// ErrClosed: the reactor was closed.
	ErrClosed = errors.New("reactor closed")
	// ErrPanic: the connection's handler panicked; the log has the stack.
	ErrPanic = errors.New("handler panicked")
	// ErrCloseTimeout: the peer did not take what was queued when the
	// connection was closed, and made no progress for [Options.CloseTimeout].
	ErrCloseTimeout = errors.New("peer stopped reading while the connection closed")
)

// Placement is the way in which accepted connections get to the loops.
type Placement uint8

const (
	// RoundRobin hands connections from the acceptor to the loops in turn. (With
	// one worker there is no acceptor beside it, whatever the placement.)
	RoundRobin Placement = iota
	// LeastLoaded hands a connection from the acceptor to the loop that has
	// the fewest accepted connections.
	LeastLoaded
	// ReusePort gives each loop its own listening socket (SO_REUSEPORT); the
	// kernel spreads connections by a hash of their addresses. A port that
	// another process has is still refused.
	ReusePort
)

// String returns the placement's name.
func (p Placement) String() string {
	switch p {
	case RoundRobin:
		return "round-robin"
	case LeastLoaded:
		return "least-loaded"
	case ReusePort:
		return "reuse-port"
	}
	return fmt.Sprintf("placement(%d)", uint8(p))
}

// Options configure a Reactor. The zero value is usable.
type Options struct {
	// Workers is the number of loops; 0 means GOMAXPROCS.
	Workers int
	// Pin binds loop i to the i-th CPU of the process's affinity mask.
	Pin bool
	// Placement chooses a connection's loop.
	Placement Placement
	// Share lets a process of the same user listen beside this one, by
	// [Reactor.ListenBeside], on addresses that this one has bound.
	Share bool
	// ReadBuffer is the size in bytes of a loop's read buffer, and so the
	// longest slice that OnRead gets. Default 64 KiB.
	ReadBuffer int
	// HighWater and LowWater are a connection's outbound watermarks in bytes.
	// Defaults 256 KiB and 64 KiB.
	HighWater, LowWater int
	// CloseTimeout is how long a closing connection may make no progress in
	// delivering what was queued. Default 30 s: the windows of slow readers open
	// in steps.
	CloseTimeout time.Duration
	// Logger gets panics and accept errors. nil discards them.
	Logger *zap.Logger
}

// withDefaults returns o with its zero fields filled in, or an error that names
// the field that makes no sense.
func (o Options) withDefaults() (Options, error) {
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.ReadBuffer == 0 {
		o.ReadBuffer = 64 << 10
	}
	if o.HighWater == 0 {
		o.HighWater = 256 << 10
	}
	if o.LowWater == 0 {
		o.LowWater = min(64<<10, o.HighWater/2)
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	switch {
	case o.Workers < 0 || o.Workers > 1024:
		return o, fmt.Errorf("reactor: workers %d not in [0, 1024]", o.Workers)
	case o.Placement > ReusePort:
		return o, fmt.Errorf("reactor: unknown placement %d", o.Placement)
	case o.ReadBuffer < 512:
		return o, fmt.Errorf("reactor: read buffer of %d bytes is below 512", o.ReadBuffer)
	case o.LowWater < 0 || o.HighWater <= o.LowWater || o.HighWater > 1<<30:
		return o, fmt.Errorf("reactor: watermarks %d, %d: need 0 <= low < high <= 1 GiB", o.LowWater, o.HighWater)
	case o.CloseTimeout < 0:
		return o, fmt.Errorf("reactor: close timeout %v is negative", o.CloseTimeout)
	}
	return o, nil
}
