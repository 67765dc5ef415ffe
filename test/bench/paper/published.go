//go:build linux

package main

// What the paper printed, to stand beside what is measured.

// published1 is the paper's Table 1, at 23,680 requests per second on 4 cores.
var published1 = struct{ sync, async column }{
	sync:  column{peak: 29_600, p50: 14_200, p99: 69_400, p999: 312_000, cpu: 91.4, rss: 4218, errors: 0.023},
	async: column{peak: 112_400, p50: 4_100, p99: 18_300, p999: 41_700, cpu: 63.2, rss: 298, errors: 0.0001},
}

// column is one column of Table 1: requests per second, microseconds, per cent,
// MB, and a part of 1.
type column struct {
	peak, p50, p99, p999, cpu, rss, errors float64
}

// published2 is Table 2, by cores.
var published2 = map[int]struct{ peak, bound, efficiency float64 }{
	2: {54_800, 56_200, 0.975},
	4: {112_400, 112_400, 1},
	8: {198_600, 224_800, 0.883},
}

// published3 is Table 3: milliseconds and a part of 1. The paper gives the
// baseline's errors at one utilisation only.
var published3 = map[float64]struct{ median, p99, errors float64 }{
	0.70: {0, 0, 0},
	0.80: {0, 0, 0},
	0.85: {4.2, 9.1, 0.0002},
	0.90: {4.4, 9.8, 0.0008},
	0.95: {4.7, 11.2, 0.0031},
	1.00: {5.1, 13.4, 0.0140},
}

const publishedBaselineErrors = 0.347 // at 0.95

// published4 is Table 4 in MB, for those numbers of connections that are measured
// here; 9,000 is set beside the paper's 10,000.
var published4 = map[int]struct{ sync, async, model float64 }{
	100:  {358, 261, 260.4},
	1000: {1268, 264, 260},
	5000: {5416, 276, 276},
	9000: {10_512, 296, 300},
}
