package controllers

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
)

// server is an API server that comes and goes.
type server struct {
	away  atomic.Bool
	dials atomic.Int64
}

var errAway = errors.New("connection refused")

func (s *server) connect(context.Context, string, string) (net.Conn, error) {
	s.dials.Add(1)
	if s.away.Load() {
		return nil, errAway
	}
	here, there := net.Pipe()
	there.Close()
	return here, nil
}

func newTestDialer() (*dialer, *server) {
	s := &server{}
	return &dialer{log: zap.NewNop(), connect: s.connect, again: time.Millisecond}, s
}

func TestDialWaitsForAnAPIServerThatWasThere(t *testing.T) {
	d, s := newTestDialer()
	if _, err := d.dial(t.Context(), "tcp", "x"); err != nil {
		t.Fatal(err)
	}
	s.away.Store(true)
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() {
			if _, err := d.dial(t.Context(), "tcp", "x"); err != nil {
				t.Error(err)
			}
		})
	}
	for s.dials.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	s.away.Store(false)
	waiting.Wait()
	if n := d.waiting.Load(); n != 0 {
		t.Errorf("%d connections wait", n)
	}
}

func TestDialFailsAtOnceWhenTheAPIServerWasNeverThere(t *testing.T) {
	d, s := newTestDialer()
	s.away.Store(true)
	if _, err := d.dial(t.Context(), "tcp", "x"); !errors.Is(err, errAway) || s.dials.Load() != 1 {
		t.Errorf("%v after %d tries", err, s.dials.Load())
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	d, s := newTestDialer()
	d.reached.Store(true)
	s.away.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.dial(ctx, "tcp", "x"); !errors.Is(err, errAway) {
		t.Error(err)
	}
}

// TestDialsThatWaitAreBounded has more connections that wait than may.
func TestDialsThatWaitAreBounded(t *testing.T) {
	d, s := newTestDialer()
	d.reached.Store(true)
	s.away.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waiting sync.WaitGroup
	for range maxPatient {
		waiting.Go(func() { _, _ = d.dial(ctx, "tcp", "x") })
	}
	for d.waiting.Load() < maxPatient {
		time.Sleep(time.Millisecond)
	}
	if _, err := d.dial(ctx, "tcp", "x"); !errors.Is(err, errAway) {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	waiting.Wait()
}
