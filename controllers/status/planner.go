package status

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How soon an object is written again: after a success, so that a Gateway to
// which a thousand routes attach is not written a thousand times, and after a
// failure. The pause doubles from write to write, and ends early when nothing has
// changed for a quarter of it: what holds in the end is told soon.
const (
	paceFirst = 50 * time.Millisecond
	paceMost  = 3200 * time.Millisecond
	calm      = 5 * time.Second // after which the pace starts anew

	conflictFirst = 20 * time.Millisecond
	conflictMost  = 5 * time.Second
	failureFirst  = 200 * time.Millisecond
	failureMost   = 30 * time.Second
)

// planner decides what is written when. It does no I/O and is for one goroutine.
type planner struct {
	now      func() time.Time
	turn     *turn
	subjects []subject
	progress map[subjectKey]*progress
	// open are the subjects that may have to be written, by their place in
	// subjects. The others are as they should be.
	open []int
}

// progress is what is known of a subject.
type progress struct {
	turn *turn // that named it last
	busy bool  // a write is under way

	// The last look: that version of the object said what it should.
	known   bool
	says    any
	live    string
	version string

	// written is the object after our last write, until the source has moved on
	// from base, the version that it had then.
	written client.Object
	base    string

	wanted    any // what it should say, and since when
	since     time.Time
	last      time.Time // of a write
	pace      time.Duration
	notBefore time.Time
	failures  int
}

// job is one write.
type job struct {
	key   subjectKey
	says  any
	live  string
	base  string
	write write
}

// take makes the plan for another turn.
func (p *planner) take(t *turn, subjects []subject) {
	p.turn, p.subjects, p.open = t, subjects, p.open[:0]
	now := p.now()
	for i := range subjects {
		s := &subjects[i]
		st := p.progress[s.subjectKey]
		if st == nil {
			st = &progress{}
			p.progress[s.subjectKey] = st
		}
		st.turn = t
		if st.wanted != s.says {
			st.wanted, st.since = s.says, now
		}
		if st.written != nil && version(s.object) != st.base {
			st.written = nil // the source has moved on
		}
		if st.known && st.says == s.says && st.live == s.live && st.version == version(st.current(s)) && !st.busy {
			continue
		}
		p.open = append(p.open, i)
	}
	for key, st := range p.progress {
		if st.turn != t && !st.busy {
			delete(p.progress, key)
		}
	}
}

// next returns up to most writes that are due, and how long to wait for the next
// one; 0 means until something happens.
func (p *planner) next(most int) (jobs []job, wait time.Duration) {
	now := p.now()
	open := p.open[:0]
	for n, i := range p.open {
		s := &p.subjects[i]
		st := p.progress[s.subjectKey]
		switch {
		case len(jobs) == most:
			p.open = append(open, p.open[n:]...)
			return jobs, 0 // a write will end
		case st.busy:
			open = append(open, i)
			continue
		}
		due := st.due()
		if pace := st.last.Add(livePace); st.known && st.says == s.says && st.live != s.live && pace.After(due) {
			due = pace
		}
		if s.notBefore.After(due) {
			due = s.notBefore
		}
		if d := due.Sub(now); d > 0 {
			if wait == 0 || d < wait {
				wait = d
			}
			open = append(open, i)
			continue
		}
		have := st.current(s)
		do := s.change(have, clock(now))
		if do == nil {
			st.known, st.says, st.live, st.version = true, s.says, s.live, version(have)
			continue
		}
		st.busy = true
		open = append(open, i)
		jobs = append(jobs, job{s.subjectKey, s.says, s.live, version(s.object), do})
	}
	p.open = open
	return jobs, wait
}

// done takes what came of a write and returns how often it failed in a row.
func (p *planner) done(o outcome, jitter func(time.Duration) time.Duration) int {
	st := p.progress[o.key]
	if st == nil {
		return 0
	}
	now := p.now()
	st.busy = false
	switch {
	case o.err == nil:
		st.failures = 0
		st.known, st.says, st.live, st.version = true, o.says, o.live, version(o.object)
		st.written, st.base = o.object, o.base
		if st.pace = min(2*st.pace, paceMost); st.pace == 0 || now.Sub(st.last) > calm {
			st.pace = paceFirst
		}
		st.last = now
		st.notBefore = now.Add(st.pace)
		return 0
	case apierrors.IsNotFound(o.err):
		// It was deleted: the source will say so.
		st.failures++
		st.notBefore = now.Add(jitter(backoff(failureFirst, failureMost, st.failures)))
	case apierrors.IsConflict(o.err), apierrors.IsAlreadyExists(o.err):
		// The source will show the other version soon.
		st.failures++
		st.written = nil
		st.notBefore = now.Add(jitter(backoff(conflictFirst, conflictMost, st.failures)))
	default:
		st.failures++
		st.notBefore = now.Add(jitter(backoff(failureFirst, failureMost, st.failures)))
	}
	return st.failures
}

// due is when the object may be written.
func (st *progress) due() time.Time {
	if st.failures > 0 {
		return st.notBefore
	}
	if quiet := st.since.Add(st.pace / 4); quiet.Before(st.notBefore) {
		return quiet
	}
	return st.notBefore
}

// current is the latest version of the object that is known.
func (st *progress) current(s *subject) client.Object {
	if st.written != nil {
		return st.written
	}
	return s.object
}

// version is an object's resource version; "" when there is none.
func version(o client.Object) string {
	if o == nil {
		return ""
	}
	return o.GetResourceVersion()
}

// backoff is the pause after so many failures.
func backoff(first, most time.Duration, failures int) time.Duration {
	return min(first<<min(failures-1, 16), most)
}
