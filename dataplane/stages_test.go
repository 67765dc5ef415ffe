package dataplane

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The stages show what passed through them: how many, and how long the pool's
// took.
func TestStagesAreMeasured(t *testing.T) {
	const takes = 5 * time.Millisecond
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/fast" {
			time.Sleep(takes)
		}
		_, _ = w.Write([]byte("ok"))
	})
	s := newServer(t, nil)
	for _, st := range s.Stages() {
		if st.Arrivals != 0 || st.Rho != 0 || st.Predicted != 0 {
			t.Errorf("before any request: %+v", st)
		}
	}
	addr := apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil))
	end := time.Now().Add(2 * patience)
	sent := 0
	for {
		resp, err := http.Get("http://" + addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		sent++
		if st := s.Stages(); st[stageProxy].Departures > 20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nothing was shown after %d requests: %+v", sent, s.Stages())
		}
	}
	st := s.Stages()
	names := ""
	for _, x := range st {
		names += x.Name + " "
	}
	if names != "S1 S2 S3 S4 S5 loop " {
		t.Errorf("stages %s", names)
	}
	for _, k := range []stage{stageParse, stageMatch, stageProxy, stageWrite, stageLoop} {
		x := st[k]
		if x.Arrivals < 20 || x.Arrivals > uint64(sent) || x.Departures > x.Arrivals || x.Time <= 0 || x.Servers == 0 || !(x.Rho > 0 && x.Rho < 1) {
			t.Errorf("%+v, after %d requests", x, sent)
		}
	}
	if got := st[stageProxy]; got.Time < takes.Seconds() || got.Predicted < takes.Seconds() || got.Servers != 1024 {
		t.Errorf("S4 %+v of an upstream that takes %v", got, takes)
	}
	sum := st[stageParse].Time + st[stageMatch].Time + st[stageWrite].Time
	if got := st[stageLoop].Time; got < sum/2 || got > 2*sum {
		t.Errorf("on the loop %v, in its stages %v", got, sum)
	}
	if st[stageLoop].Time >= st[stageProxy].Time {
		t.Errorf("a loop is busy for %v with a request of %v", st[stageLoop].Time, st[stageProxy].Time)
	}
	// It takes enough requests in one second: also where each takes long.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for s.cpuCapacity() == 0 && time.Now().Before(end) {
				resp, err := http.Get("http://" + addr + "/fast")
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body) // the connection is used again
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if c := s.cpuCapacity(); c < 100 || c > 1e7 {
		t.Errorf("the loops can do %v requests per second", c)
	}
}

// BenchmarkStages is what the measuring costs a request, all stages together, at
// a rate at which a sample is measured.
func BenchmarkStages(b *testing.B) {
	s := newServer(b, nil)
	w := s.workers[0]
	done := make(chan struct{})
	w.Post(func() {
		defer close(done)
		var x sample
		placed := w.loop.Now()
		w.pipeline.since, w.pipeline.every = placed, 100 // 20,000 requests a second
		for b.Loop() {
			w.arrive(&x)
			w.matched(&x)
			for range 3 { // head, data, end
				w.writing(&x)
				w.wrote(&x)
			}
			w.answered(&x, placed)
		}
	})
	<-done
}

// After a silence the figures are those of what came then: a window that has the
// silence in it would make a busy stage look idle for as long as it is shown.
func TestStagesAfterASilence(t *testing.T) {
	s := newServer(t, nil)
	w := s.workers[0]
	done := make(chan struct{})
	w.loop.Post(func() {
		defer close(done)
		now := time.Now()
		p := &w.pipeline
		w.publish(now.Add(-time.Hour-time.Second), stageWindow)
		for _, window := range []struct{ from, to time.Time }{
			{now.Add(-time.Hour), now.Add(-time.Second)},
			{now.Add(-time.Second), now},
		} {
			p.since = window.from
			for i := range 100 {
				p.stages[stageMatch].Arrive(window.to.Add(time.Duration(i-100) * 5 * time.Millisecond))
				p.stages[stageMatch].Depart(0, time.Millisecond)
				p.n++
			}
			w.publish(window.to, window.to.Sub(window.from))
		}
	})
	<-done
	if st := s.Stages()[stageMatch]; st.Lambda < 50 || st.Rho < 0.01 {
		t.Errorf("100 requests in the last second: %+v", st)
	}
}
