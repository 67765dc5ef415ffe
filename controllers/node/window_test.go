package node

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hundreds is a table of times in which bucket i stands for i times 100 ms.
func hundreds(bucket int) time.Duration { return time.Duration(bucket) * 100 * time.Millisecond }

func TestWindow(t *testing.T) {
	type sample struct {
		at time.Duration
		Counts
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		samples []sample
		want    figures
	}{
		"nothing":    {},
		"one sample": {samples: []sample{{0, Counts{Placed: 100, Shed: 7, Times: []uint32{1, 2, 3}}}}},
		"no request": {samples: []sample{{0, Counts{Placed: 100, Shed: 7, Times: []uint32{0, 2}}}, {2 * time.Second, Counts{Placed: 100, Shed: 7, Times: []uint32{0, 2}}}}},
		"some were shed": {
			samples: []sample{{0, Counts{Placed: 100, Times: []uint32{0, 2, 50}}}, {2 * time.Second, Counts{Placed: 190, Shed: 10, Times: []uint32{0, 2, 140}}}},
			want:    figures{requests: 100, shed: 10, perSecond: 50, p50: 200 * ms, p99: 200 * ms},
		},
		"all were shed, none answered": {
			samples: []sample{{0, Counts{Times: []uint32{0, 9}}}, {2 * time.Second, Counts{Shed: 10, Times: []uint32{0, 9}}}},
			want:    figures{requests: 10, shed: 10, perSecond: 5},
		},
		"one in a hundred": {
			samples: []sample{{0, Counts{Times: []uint32{0, 0, 0, 0}}}, {time.Second, Counts{Placed: 100, Times: []uint32{0, 50, 49, 1}}}},
			want:    figures{requests: 100, perSecond: 100, p50: 100 * ms, p99: 200 * ms},
		},
		"two in a hundred": {
			samples: []sample{{0, Counts{Times: []uint32{0, 0, 0, 0}}}, {time.Second, Counts{Placed: 100, Times: []uint32{0, 49, 49, 2}}}},
			want:    figures{requests: 100, perSecond: 100, p50: 200 * ms, p99: 300 * ms},
		},
		"counts that wrap": {
			samples: []sample{
				{0, Counts{Placed: math.MaxUint64 - 5, Shed: math.MaxUint64, Times: []uint32{0, math.MaxUint32 - 3, math.MaxUint32}}},
				{2 * time.Second, Counts{Placed: 4, Shed: 1, Times: []uint32{0, 5, 0}}},
			},
			want: figures{requests: 12, shed: 2, perSecond: 6, p50: 100 * ms, p99: 200 * ms},
		},
		"another cluster of the name": {
			samples: []sample{{0, Counts{Instance: 1, Placed: 10, Times: []uint32{0, 10}}}, {2 * time.Second, Counts{Instance: 2, Placed: 90, Times: []uint32{0, 2}}}},
		},
		"and its second sample": {
			samples: []sample{
				{0, Counts{Instance: 1, Placed: 10, Times: []uint32{0, 10}}}, {2 * time.Second, Counts{Instance: 2, Placed: 90, Times: []uint32{0, 2}}},
				{4 * time.Second, Counts{Instance: 2, Placed: 94, Times: []uint32{0, 3}}},
			},
			want: figures{requests: 4, perSecond: 2, p50: 100 * ms, p99: 100 * ms},
		},
		"what is long ago does not count": {
			samples: []sample{
				{0, Counts{Times: []uint32{0}}}, {2 * time.Second, Counts{Shed: 100, Times: []uint32{0}}}, {12 * time.Second, Counts{Shed: 100, Placed: 20, Times: []uint32{0}}},
			},
			want: figures{requests: 20, perSecond: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w window
			for _, s := range c.samples {
				w.take(time.Unix(1000, 0).Add(s.at), s.Counts)
			}
			if diff := cmp.Diff(c.want, w.figures(hundreds), cmp.AllowUnexported(figures{})); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

// However often it is sampled, a window has some marks only, and looks back as far
// as it should.
func TestWindowMarks(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second, 7 * time.Second, time.Minute} {
		var w window
		at := time.Unix(1000, 0)
		for i := range uint64(60 * time.Second / every) {
			w.take(at, Counts{Placed: i})
			at = at.Add(every)
		}
		w.take(at, Counts{Placed: uint64(60 * time.Second / every)})
		back := at.Sub(w.marks[0].at)
		if len(w.marks) > 12 || back < span || back > max(span+span/4, span+every) {
			t.Errorf("every %v: %d marks over %v", every, len(w.marks), back)
		}
		if got := w.figures(nil).perSecond; math.Abs(got*every.Seconds()-1) > 1e-9 {
			t.Errorf("every %v: %v per second", every, got)
		}
	}
}

func TestShedPercent(t *testing.T) {
	for _, c := range []struct {
		shed, requests uint64
		want           int32
	}{
		{0, 0, 0}, {0, 10, 0}, {1, 1_000_000, 1}, {14, 1000, 1}, {16, 1000, 2}, {94, 1000, 9}, {96, 1000, 10}, {12, 100, 10}, {13, 100, 15},
		{50, 100, 50}, {999, 1000, 99}, {97, 100, 95}, {7, 7, 100}, {math.MaxUint64 / 2, math.MaxUint64, 50},
	} {
		if got := (figures{shed: c.shed, requests: c.requests}).shedPercent(); got != c.want {
			t.Errorf("%d of %d: %d %%, want %d", c.shed, c.requests, got, c.want)
		}
	}
}

func TestRounding(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 7: 7, 99: 99, 104: 100, 105: 110, 995: 1000, 1049: 1000, 123456: 120000} {
		if got := twoDigits(n); got != want {
			t.Errorf("%d is rounded to %d, want %d", n, got, want)
		}
	}
	for d, want := range map[time.Duration]int64{-1: 0, 0: 0, time.Microsecond: 1, 1600 * time.Microsecond: 2, 852 * time.Millisecond: 850} {
		if got := millis(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
	for _, c := range []struct {
		a, b int64
		want bool
	}{{0, 0, false}, {0, 1, true}, {3, 4, false}, {4, 3, false}, {2, 3, true}, {760, 1000, false}, {740, 1000, true}} {
		if got := apart(c.a, c.b); got != c.want {
			t.Errorf("%d and %d: %v", c.a, c.b, got)
		}
	}
}
