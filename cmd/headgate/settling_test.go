package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// taker is a data plane that refuses everything.
type taker struct{ err error }

func (t taker) Apply(*ir.Snapshot) ir.ApplyResult { return ir.ApplyResult{Err: t.err} }

// TestSettling checks that calm is told of once after the last of several changes.
func TestSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calm atomic.Int32
		refused := errors.New("refused")
		s := newSettling(taker{refused}, func() { calm.Add(1) })
		defer s.calm.Stop()
		want := func(n int32) {
			t.Helper()
			if synctest.Wait(); calm.Load() != n {
				t.Errorf("calm was told %d times, want %d", calm.Load(), n)
			}
		}
		for range 5 {
			time.Sleep(settleAfter - time.Millisecond)
			if res := s.Apply(&ir.Snapshot{}); !errors.Is(res.Err, refused) {
				t.Errorf("the answer is %v", res.Err)
			}
		}
		want(0)
		time.Sleep(settleAfter)
		want(1)
		time.Sleep(time.Hour)
		want(1)
		s.Apply(&ir.Snapshot{})
		time.Sleep(settleAfter)
		want(2)
	})
}

func TestWorthwhile(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		live, held uint64
		want       bool
	}{
		"nothing to give":   {48 * mib, 48 * mib, false},
		"a little":          {48 * mib, 60 * mib, false},
		"after a start":     {48 * mib, 80 * mib, true},
		"a small heap":      {6 * mib, 12 * mib, false},
		"a small heap left": {6 * mib, 30 * mib, true},
		"no collection yet": {0, 4 * mib, false},
		"counts that waver": {50 * mib, 49 * mib, false},
	} {
		if got := worthwhile(test.live, test.held); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
