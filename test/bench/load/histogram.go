//go:build linux

package main

import (
	"math/bits"
	"time"
)

// subBuckets is the number of buckets in each power of two: an error of at most
// 1/128.
const subBuckets = 128

// histogram counts durations in buckets of constant relative width. The zero
// value is empty.
type histogram struct {
	buckets [40 * subBuckets]uint64
	count   uint64
	sum     time.Duration
	max     time.Duration
}

// bucket returns the index for a duration in nanoseconds.
func bucket(ns uint64) int {
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - 8 // keeps 8 significant bits, the first of them 1
	return min(shift*subBuckets+int(ns>>shift), 40*subBuckets-1)
}

// upper returns the largest duration of a bucket.
func upper(i int) time.Duration {
	if i < 2*subBuckets {
		return time.Duration(i)
	}
	shift := i/subBuckets - 1
	return time.Duration((uint64(i%subBuckets+subBuckets)+1)<<shift - 1)
}

// add counts one duration.
func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucket(uint64(d))]++
	h.count++
	h.sum += d
	h.max = max(h.max, d)
}

// mean returns the mean of all; 0 of none.
func (h *histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// quantile returns the duration that the share q of all stays at or below.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q*float64(h.count) + 0.5)
	var seen uint64
	for i, n := range h.buckets {
		seen += n
		if n > 0 && seen >= rank {
			return min(upper(i), h.max)
		}
	}
	return h.max
}
