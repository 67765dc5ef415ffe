//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The histogram's quantiles are those of the sorted values, within the width of
// a bucket.
func TestHistogramAgainstSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []time.Duration
	for range 50_000 {
		d := time.Duration(math.Exp(r.Float64()*20) * 100)
		h.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(q*float64(len(all))+0.5)-1)]
		got := h.quantile(q)
		if got < want || float64(got) > float64(want)*(1+1.0/64)+1 {
			t.Errorf("quantile %v is %v, want %v or little more", q, got, want)
		}
	}
}

func TestHistogramBuckets(t *testing.T) {
	last := -1
	for ns := uint64(0); ns < 1<<20; ns++ {
		b := bucket(ns)
		if b != last && b != last+1 {
			t.Fatalf("%d ns is in bucket %d, after %d", ns, b, last)
		}
		if upper(b) < time.Duration(ns) {
			t.Fatalf("%d ns is above its bucket's end %v", ns, upper(b))
		}
		last = b
	}
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	h.add(time.Hour)
	h.add(-1)
	if h.quantile(1) != time.Hour || h.quantile(0.5) != 0 {
		t.Errorf("quantiles %v and %v, want 1h and 0", h.quantile(1), h.quantile(0.5))
	}
}
