package dataplane

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/dataplane/queueing"
)

// stage is one of the paper's pipeline (3.1), or all that runs on a loop.
type stage uint8

const (
	stageAccept stage = iota // S1: accepted, and its TLS handshake done
	stageParse               // S2: read and parsed
	stageMatch               // S3: matched and balanced
	stageProxy               // S4: waited for a place in a pool, and had it
	stageWrite               // S5: answer transformed and queued for the client
	stageLoop                // S2, S3 and S5 of one request
	stages
)

const (
	// stageWindow is how long is measured before the result is shown;
	// stageWindows of them are joined, none older than stageAge.
	stageWindow  = time.Second
	stageWindows = 10
	stageAge     = 15 * time.Second
	// sampleRate is about how many requests per second and loop are measured.
	sampleRate = 200
	// enough is how many requests a loop's CPU time is divided by at least.
	enough = 50
)

// pipeline measures the stages on one loop. All of them see a request's arrival
// as its head; of the rest, a sample is measured, by a clock that is read anew.
type pipeline struct {
	stages [stages]queueing.Stage
	since  time.Time // when the window began
	mark   time.Time // when the last measured part of this callback ended
	last   time.Time // the last request
	n      uint32    // requests in the window
	every  uint32    // of so many requests one is measured
	left   uint32    // requests until the next one that is
	busy   int64     // CPU time of the thread when the window began, nanoseconds

	// For others to see.
	windows [stageWindows]atomic.Pointer[window]
	next    int
	perCPU  atomic.Uint64 // requests per second of CPU time, a float64; 0: not known
}

// window is what was measured in one window. It never changes.
type window struct {
	stages   [stages]queueing.Stage
	from, to time.Time
}

// sample is what an exchange measures of itself.
type sample struct {
	on     bool
	opened time.Time     // when it asked for a place
	cpu    time.Duration // time on the loop so far, S2 and S3
	write  time.Duration // S5 so far
}

// arrive takes a request whose head was parsed, and says whether it is measured:
// then S2 of it was.
func (w *worker) arrive(s *sample) {
	p, now := &w.pipeline, w.loop.Now()
	p.n++
	if p.left > 1 && now.Sub(p.since) < stageWindow {
		p.left--
		p.last = now
		s.on = false
		return
	}
	p.skip()
	if d := now.Sub(p.since); d >= stageWindow {
		w.publish(now, d)
	}
	for i := stageParse; i < stages; i++ {
		p.stages[i].Arrive(now)
	}
	p.left = p.every
	*s = sample{on: true}
	s.cpu = w.lap(now)
	p.stages[stageParse].Depart(0, s.cpu)
}

// skip counts the requests since the last one that was measured.
func (p *pipeline) skip() {
	n := uint64(p.every - p.left)
	for i := stageParse; i < stages; i++ {
		p.stages[i].Skip(n, p.last)
	}
}

// lap returns the time since the last lap in this callback, which began at now.
func (w *worker) lap(now time.Time) time.Duration {
	p, at := &w.pipeline, w.loop.Clock()
	if p.mark.After(now) {
		now = p.mark
	}
	p.mark = at
	return at.Sub(now)
}

// matched ends S3 of a measured request.
func (w *worker) matched(s *sample) {
	if !s.on {
		return
	}
	d := w.lap(w.loop.Now())
	s.cpu += d
	s.opened = w.loop.Now()
	w.pipeline.stages[stageMatch].Depart(0, d)
}

// writing begins a part of S5; wrote ends it.
func (w *worker) writing(s *sample) {
	if s.on {
		w.pipeline.mark = w.loop.Clock()
	}
}

func (w *worker) wrote(s *sample) {
	if s.on {
		s.write += w.lap(w.loop.Now())
	}
}

// answered ends S4 and S5 of a measured request, which got its place at placed.
func (w *worker) answered(s *sample, placed time.Time) {
	if !s.on {
		return
	}
	p := &w.pipeline
	p.stages[stageProxy].Depart(placed.Sub(s.opened), w.loop.Now().Sub(placed))
	p.stages[stageWrite].Depart(0, s.write)
	p.stages[stageLoop].Depart(0, s.cpu+s.write)
}

// accepted takes a connection that is ready for requests: S1. It came at the
// given time.
func (w *worker) accepted(at time.Time) {
	s := &w.pipeline.stages[stageAccept]
	s.Arrive(at)
	s.Depart(0, w.loop.Clock().Sub(at))
}

// publish shows what was measured in a window of d, and begins the next one.
func (w *worker) publish(now time.Time, d time.Duration) {
	p := &w.pipeline
	busy := w.loop.Stats().BusyNanos
	// A window that a silence has stretched says nothing of the present.
	if !p.since.IsZero() && d > 0 && d <= stageAge {
		p.windows[p.next].Store(&window{stages: p.stages, from: p.since, to: now})
		p.next = (p.next + 1) % stageWindows
		// A request more or less, and the work of those that are under way, must
		// not count.
		if used := busy - p.busy; p.n >= enough && used > 0 {
			p.perCPU.Store(math.Float64bits(float64(p.n) * 1e9 / float64(used)))
		}
		p.every = uint32(max(float64(p.n)/d.Seconds()/sampleRate, 1))
	}
	p.every = max(p.every, 1)
	p.since, p.n, p.busy = now, 0, busy
	for i := range p.stages {
		p.stages[i].Reset(now)
	}
}

// cpuCapacity returns the requests per second that the loops can do (Eq. 2), 0
// when it is not known.
func (s *Server) cpuCapacity() float64 {
	sum, known := 0.0, 0
	for _, w := range s.workers {
		if v := math.Float64frombits(w.pipeline.perCPU.Load()); v > 0 {
			sum += v
			known++
		}
	}
	if known == 0 {
		return 0
	}
	return sum / float64(known) * float64(len(s.workers))
}

// Stage is a stage of the pipeline as it was measured over the last seconds.
type Stage struct {
	Name    string // S1 to S5, or "loop"
	Servers int    // that serve in parallel; 0: as many as there are requests
	queueing.Live
	// Rho is the utilisation, Eq. (4); 0 without Servers. Predicted is W of the
	// G/G/c model in seconds, 0 where there is none.
	Rho, Predicted float64
}

// Stages returns the pipeline's stages, S1 to S5, and what runs of them on the
// loops as one. Without requests there is nothing to measure, and they are
// zero.
func (s *Server) Stages() []Stage {
	places := 0
	for _, c := range s.clusters.Clusters() {
		places += c.Stats().Size
	}
	var joined [stages]queueing.Stage
	var last time.Time
	now := s.opts.Now()
	for _, w := range s.workers {
		for i := range w.pipeline.windows {
			v := w.pipeline.windows[i].Load()
			if v == nil || now.Sub(v.to) > stageAge {
				continue
			}
			for k := range joined {
				part := v.stages[k]
				joined[k].Add(&part)
			}
			if v.to.After(last) {
				last = v.to
			}
		}
	}
	out := make([]Stage, 0, stages)
	for k := range stages {
		st := Stage{Name: stageNames[k], Live: joined[k].Read(last)}
		switch k {
		case stageAccept: // handshakes wait for their clients, not for each other
		case stageProxy:
			st.Servers = places
		default:
			st.Servers = len(s.workers)
		}
		if st.Servers > 0 {
			st.Rho = st.Busy / float64(st.Servers)
			if f, err := st.Queue(st.Servers).GGc(); err == nil && st.Mu > 0 {
				st.Predicted = f.Time
			}
		}
		out = append(out, st)
	}
	return out
}

var stageNames = [stages]string{"S1", "S2", "S3", "S4", "S5", "loop"}
