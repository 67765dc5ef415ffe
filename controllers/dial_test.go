package controllers

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	return dialerOf(zap.NewNop(), s.connect, time.Millisecond), s
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

// Connections that wait don't all knock at the door, and all go through it.
func TestOneOfTheDialsThatWaitTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newTestDialer()
		d.again = dialAgain
		d.reached.Store(true)
		s.away.Store(true)
		var waiting sync.WaitGroup
		for range 50 {
			waiting.Go(func() {
				if _, err := d.dial(t.Context(), "tcp", "x"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, most := s.dials.Load(), int64(50+2*time.Hour/dialAgain); n > most {
			t.Errorf("%d tries in an hour, of %d at most", n, most)
		}
		s.away.Store(false)
		back := time.Now()
		waiting.Wait()
		if d := time.Since(back); d > 2*dialAgain {
			t.Errorf("they wait for another %v", d)
		}
	})
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
