package tlsterm

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestGateOrder(t *testing.T) {
	g := gate{free: 1}
	var got []string
	enter := func(begun bool, name string) { g.enter(begun, func() { got = append(got, name) }) }
	enter(false, "first")
	enter(false, "fresh 1")
	enter(false, "fresh 2")
	enter(true, "begun 1")
	gone := g.enter(true, func() { t.Error("a place was granted to one that had withdrawn") })
	enter(true, "begun 2")
	goneToo := g.enter(false, func() { t.Error("a place was granted to one that had withdrawn") })
	g.withdraw(gone)
	g.withdraw(gone)
	g.withdraw(goneToo)
	if s := g.stats(); s != (Stats{Computing: 1, Waiting: 4}) {
		t.Errorf("stats %+v", s)
	}
	for range 5 {
		g.leave()
	}
	if want := []string{"first", "begun 1", "begun 2", "fresh 1", "fresh 2"}; !slices.Equal(got, want) {
		t.Errorf("granted %q, want %q", got, want)
	}
	if s := g.stats(); s != (Stats{}) || g.free != 1 {
		t.Errorf("at the end: %+v, %d free", s, g.free)
	}
}

func TestGateBound(t *testing.T) {
	g := gate{free: 3}
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 100 {
				granted := make(chan struct{})
				g.enter(i%2 == 0, func() { close(granted) })
				<-granted
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				inside.Add(-1)
				g.leave()
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d inside at once, want at most 3", most.Load())
	}
	if s := g.stats(); s != (Stats{}) {
		t.Errorf("at the end: %+v", s)
	}
}
