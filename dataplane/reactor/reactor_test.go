//go:build linux

package reactor

import (
	"errors"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		err  string // "" when it is fine
	}{
		{"zero", Options{}, ""},
		{"negative workers", Options{Workers: -1}, "workers"},
		{"too many workers", Options{Workers: 2000}, "workers"},
		{"placement", Options{Placement: 7}, "placement 7"},
		{"small buffer", Options{ReadBuffer: 100}, "read buffer"},
		{"crossed watermarks", Options{HighWater: 10, LowWater: 10}, "watermarks"},
		{"negative low", Options{LowWater: -1}, "watermarks"},
		{"huge high", Options{HighWater: math.MaxInt}, "watermarks"},
		{"only high", Options{HighWater: 1 << 10}, ""},
		{"close timeout", Options{CloseTimeout: -1}, "close timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := tt.o.withDefaults()
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Fatalf("error %v, want one with %q", err, tt.err)
			}
			if _, err2 := New(tt.o); tt.err != "" && err2 == nil {
				t.Error("New accepts it")
			}
			if tt.err == "" && (o.Workers < 1 || o.ReadBuffer == 0 || o.LowWater >= o.HighWater || o.CloseTimeout == 0 || o.Logger == nil) {
				t.Errorf("defaults are missing: %+v", o)
			}
		})
	}
}

func TestPlacementNames(t *testing.T) {
	for p, want := range map[Placement]string{RoundRobin: "round-robin", LeastLoaded: "least-loaded", ReusePort: "reuse-port", 9: "placement(9)"} {
		if got := p.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(p), got, want)
		}
	}
}

// TestCloseLeavesNothing: connections of all kinds, listeners and timers are
// open; after Close the descriptors and goroutines are those of before.
func TestCloseLeavesNothing(t *testing.T) {
	warmUp(t)
	fds, goroutines := countFDs(t), runtime.NumGoroutine()
	for _, placement := range []Placement{RoundRobin, LeastLoaded, ReusePort} {
		r, err := New(Options{Workers: 3, Placement: placement})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 100)
		silent := &probe{closed: func(_ *Conn, err error) { closed <- err }}
		accepted := make(chan *Conn, 100)
		ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler { accepted <- c; return silent })
		var clients []net.Conn
		for range 20 {
			nc, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, nc)
		}
		for i := range clients {
			c := receive(t, accepted, "connection")
			on(t, c.Loop(), func() {
				switch i % 4 {
				case 0:
					c.PauseRead()
				case 1:
					c.Write(make([]byte, 8<<20)) // more than the kernel takes
					c.Close()
				case 2:
					c.CloseLinger(time.Hour)
				}
			})
		}
		l := r.Loops()[0]
		var timer Timer
		on(t, l, func() {
			l.Schedule(&timer, time.Hour)
			if _, err := l.Dial(ln.Addr(), silent); err != nil {
				t.Error(err)
			}
		})
		receive(t, accepted, "dialled connection")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil { // again
			t.Fatal(err)
		}
		for range 22 {
			if err := receive(t, closed, "OnClose"); !errors.Is(err, ErrClosed) {
				t.Errorf("OnClose got %v", err)
			}
		}
		if len(closed) > 0 {
			t.Errorf("%d more calls of OnClose", len(closed))
		}
		for _, l := range r.Loops() {
			if s := l.Stats(); s.Conns != 0 || l.Load() != 0 {
				t.Errorf("loop %d still counts %d connections, load %d", l.Index(), s.Conns, l.Load())
			}
		}
		for _, nc := range clients {
			_ = nc.Close()
		}
		if _, err := r.Listen(loopback, echo); !errors.Is(err, ErrClosed) {
			t.Errorf("Listen after Close: %v", err)
		}
		l.Post(func() { t.Error("ran after Close") })
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "descriptors are closed", func() bool { return countFDs(t) == fds })
}

// TestNothingStartsWhileClosing: a handler may try anything in its last event.
func TestNothingStartsWhileClosing(t *testing.T) {
	r, err := New(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan error, 1)
	ready := make(chan struct{})
	ln := listenOn(t, r, func(l *Loop, c *Conn) Handler {
		close(ready)
		return &probe{closed: func(c *Conn, _ error) {
			_, err := l.Dial(loopback, &probe{})
			c.Write([]byte("late"))
			c.Close()
			c.Abort(nil)
			l.Post(func() { t.Error("ran after Close") })
			dialed <- err
		}}
	})
	nc := dialTCP(t, ln.Addr())
	receive(t, ready, "connection")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, dialed, "OnClose"); !errors.Is(err, ErrClosed) {
		t.Errorf("Dial while closing: %v", err)
	}
	_ = nc.Close()
}

// warmUp makes the runtime open its own descriptors, and waits until what other
// tests have left is gone.
func warmUp(t *testing.T) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nl.Close()
	eventually(t, "nothing changes any more", func() bool {
		fds, goroutines := countFDs(t), runtime.NumGoroutine()
		time.Sleep(50 * time.Millisecond)
		return countFDs(t) == fds && runtime.NumGoroutine() == goroutines
	})
}

func countFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
