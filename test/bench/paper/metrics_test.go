//go:build linux

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

const scraped = `# TYPE headgate_upstream_deadline_seconds gauge
headgate_upstream_deadline_seconds{cluster="paper/fast:80"} 5
headgate_upstream_deadline_seconds{cluster="paper/work:80"} 0.28
# TYPE headgate_backpressure_propagation_seconds histogram
headgate_backpressure_propagation_seconds_bucket{cluster="paper/work:80",le="0.001"} 2
headgate_backpressure_propagation_seconds_bucket{cluster="paper/work:80",le="0.005"} 8
headgate_backpressure_propagation_seconds_bucket{cluster="paper/work:80",le="+Inf"} 10
headgate_backpressure_propagation_seconds_sum{cluster="paper/work:80"} 0.1
headgate_backpressure_propagation_seconds_count{cluster="paper/work:80"} 10
`

func TestMetrics(t *testing.T) {
	m, err := parseMetrics(strings.NewReader(scraped))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.gauge(metricDeadline, cluster("work")); got != 0.28 {
		t.Errorf("deadline %v", got)
	}
	if got := m.gauge(metricDeadline, cluster("none")); got != 0 {
		t.Errorf("deadline of no cluster %v", got)
	}
	bars := m.histogram(metricPropagation, cluster("work"))
	if want := []bucket{{0.001, 2}, {0.005, 6}, {unbounded, 2}}; !slices.Equal(bars, want) {
		t.Fatalf("%v, want %v", bars, want)
	}
	if m.histogram(metricPropagation, cluster("fast")) != nil {
		t.Error("a histogram of a cluster without one")
	}
	for q, want := range map[float64]float64{0.1: 0.0005, 0.2: 0.001, 0.5: 0.003, 0.8: 0.005, 0.99: 0.005} {
		if got := quantile(bars, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 || quantile(since(bars, bars), 0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	more := plus(bars, bars)
	if count(more) != 20 || !slices.Equal(since(more, bars), bars) || !slices.Equal(plus(nil, bars), bars) {
		t.Errorf("twice as many: %v", more)
	}
	if _, err := parseMetrics(strings.NewReader("not { metrics")); err == nil {
		t.Error("nonsense was parsed")
	}
}
