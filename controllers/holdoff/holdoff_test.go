package holdoff_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/controllers/holdoff"
)

// TestRun sends events at times, and notes at which times signals come.
func TestRun(t *testing.T) {
	type at struct {
		ms int
		e  holdoff.Event
	}
	every := func(from, to, step int, e holdoff.Event) (list []at) {
		for ms := from; ms <= to; ms += step {
			list = append(list, at{ms, e})
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		events []at
		want   []int
	}{
		{"one change", []at{{5, holdoff.Now}}, []int{5}},
		{"one write", []at{{5, holdoff.Settle}}, []int{15}},
		{"two changes apart", []at{{0, holdoff.Now}, {20, holdoff.Now}}, []int{0, 20}},
		{"two changes close", []at{{0, holdoff.Now}, {4, holdoff.Now}}, []int{0, 10}},
		{"a write after a change", []at{{0, holdoff.Now}, {4, holdoff.Settle}}, []int{0, 14}},
		{"a change after a write", []at{{0, holdoff.Settle}, {4, holdoff.Now}}, []int{14}},
		{"a change soon after a signal", []at{{0, holdoff.Settle}, {15, holdoff.Now}}, []int{10, 20}},
		{"a change later", []at{{0, holdoff.Settle}, {25, holdoff.Now}}, []int{10, 25}},
		{"a write after a change that waits", []at{{0, holdoff.Now}, {4, holdoff.Now}, {8, holdoff.Settle}}, []int{0, 18}},
		{"a storm", every(0, 63, 7, holdoff.Now), []int{0, 10, 20, 30, 40, 50, 60, 70}},
		{"a long storm of writes", every(0, 238, 7, holdoff.Settle), []int{100, 205, 248}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := make(chan holdoff.Event)
				start := time.Now()
				signals := holdoff.Run(t.Context(), events, holdoff.Options{})
				var got []int
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range signals {
						got = append(got, int(time.Since(start)/time.Millisecond))
					}
				}()
				for _, e := range tt.events {
					time.Sleep(time.Until(start.Add(time.Duration(e.ms) * time.Millisecond)))
					events <- e.e
					synctest.Wait()
				}
				time.Sleep(time.Second)
				close(events)
				<-done
				if !slices.Equal(got, tt.want) {
					t.Errorf("signals at %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestEnd checks that nothing is lost when the events end, and that the end of the
// context is one.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan holdoff.Event)
		signals := holdoff.Run(t.Context(), events, holdoff.Options{Pause: time.Hour, Most: 2 * time.Hour})
		events <- holdoff.Settle
		close(events)
		n := 0
		for range signals {
			n++
		}
		if n != 1 {
			t.Errorf("%d signals at the end of the events", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		signals = holdoff.Run(ctx, make(chan holdoff.Event), holdoff.Options{})
		cancel()
		if _, ok := <-signals; ok {
			t.Error("a signal at the end of the context")
		}
	})
}

// TestSlow checks that a slow reader gets one signal for many.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan holdoff.Event)
		signals := holdoff.Run(t.Context(), events, holdoff.Options{})
		for range 50 {
			events <- holdoff.Now
			time.Sleep(30 * time.Millisecond)
		}
		close(events)
		n := 0
		for range signals {
			n++
		}
		if n != 1 {
			t.Errorf("%d signals", n)
		}
	})
}
