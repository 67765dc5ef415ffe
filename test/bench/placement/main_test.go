//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const report = `Running 5s test @ http://127.0.0.1:40001/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00ms    2.00ms  30.00ms   95.00%
  Latency Distribution
     50%  676.00us
     75%    1.10ms
     90%    2.00ms
     99%   16.90ms
  102400 requests in 5.00s, 8.00MB read
  Socket errors: connect 0, read 7, write 0, timeout 3
Requests/sec:  20459.24
Transfer/sec:      1.60MB
`

func TestParse(t *testing.T) {
	got, err := parse(report)
	if err != nil {
		t.Fatal(err)
	}
	want := run{PerSecond: 20459.24, P50: 676 * time.Microsecond, P99: 16900 * time.Microsecond, Errors: 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parse("unable to connect"); err == nil {
		t.Error("a report without figures is accepted")
	}
}

func TestMedian(t *testing.T) {
	if m := median([]float64{9, 1, 4}); m != 4 {
		t.Errorf("median of three is %v", m)
	}
	if m := median([]float64{9, 1, 4, 2}); m != 3 {
		t.Errorf("median of four is %v", m)
	}
}
