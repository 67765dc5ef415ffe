package node

import "time"

// Counts are what became of the requests to a cluster since it began. Numbers may
// wrap.
type Counts struct {
	// Instance tells a cluster from an earlier one of its name, whose counts say
	// nothing of it.
	Instance uint64
	// Placed got a place in the pool, Shed were answered 503 for want of one.
	Placed, Shed uint64
	// Times are the times to the head of an answer, in the buckets of the sample.
	Times []uint32
}

// span is how far figures look back: as far as the state that is told with them.
const span = calmAfter

// window is the counts of the last seconds, oldest first.
type window struct{ marks []mark }

type mark struct {
	at time.Time
	Counts
}

// take takes the counts of now. Counts of another instance begin it anew.
func (w *window) take(now time.Time, c Counts) {
	n := len(w.marks)
	if n > 0 && (w.marks[n-1].Instance != c.Instance || len(w.marks[n-1].Times) != len(c.Times)) {
		w.marks, n = nil, 0
	}
	if n > 1 && w.marks[n-1].at.Sub(w.marks[n-2].at) < span/8 {
		w.marks = w.marks[:n-1] // more of them would only take place
	}
	w.marks = append(w.marks, mark{now, c})
	// The first one may be older than span, the second may not.
	for len(w.marks) > 2 && now.Sub(w.marks[1].at) >= span {
		w.marks = append(w.marks[:0], w.marks[1:]...)
	}
}

// known tells whether there is a window: between two samples at least.
func (w *window) known() bool { return len(w.marks) > 1 }

// figures are what the counts of a window come to.
type figures struct {
	requests, shed uint64 // the latter are some of the former
	perSecond      float64
	p50, p99       time.Duration // 0 without an answer
}

// figures works them out. timeOf returns what the answers in a bucket took.
func (w *window) figures(timeOf func(bucket int) time.Duration) figures {
	if !w.known() {
		return figures{}
	}
	first, last := w.marks[0], w.marks[len(w.marks)-1]
	f := figures{shed: last.Shed - first.Shed}
	f.requests = last.Placed - first.Placed + f.shed
	if d := last.at.Sub(first.at); d > 0 {
		f.perSecond = float64(f.requests) / d.Seconds()
	}
	// The differences are right when a count has wrapped meanwhile.
	var answers uint64
	for i := range last.Times {
		answers += uint64(last.Times[i] - first.Times[i])
	}
	if answers == 0 || timeOf == nil {
		return f
	}
	quantile := func(percent uint64) time.Duration {
		rank, seen := (answers*percent+99)/100, uint64(0)
		for i := range last.Times {
			if seen += uint64(last.Times[i] - first.Times[i]); seen >= rank {
				return timeOf(i)
			}
		}
		return 0
	}
	f.p50, f.p99 = quantile(50), quantile(99)
	return f
}

// shedPercent returns the share of requests that were shed, rounded so that it
// stays when little changes: by whole percents below ten, then by five. It is 0 or
// 100 only when none or all of them were.
func (f figures) shedPercent() int32 {
	if f.shed == 0 {
		return 0
	}
	if f.shed == f.requests {
		return 100
	}
	p := 100 * float64(f.shed) / float64(f.requests)
	if p < 10 {
		return max(int32(p+0.5), 1)
	}
	return min(int32(p/5+0.5)*5, 99)
}

// millis returns a time in milliseconds, rounded to two digits; at least 1 of what
// is not 0.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(twoDigits((d + time.Millisecond/2).Milliseconds()), 1)
}

// twoDigits rounds to two digits.
func twoDigits(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}

// apart tells whether two figures differ by more than a quarter of the larger one:
// neighbouring buckets of times don't.
func apart[N int32 | int64](a, b N) bool {
	d := a - b
	if d < 0 {
		d = -d
	}
	return 4*d > max(a, b)
}
