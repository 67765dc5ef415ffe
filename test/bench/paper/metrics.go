//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/headgate/headgate/test/bench/rig"
)

// metrics is one scrape of the gateway, by the names of the families.
type metrics map[string]*dto.MetricFamily

// The families that are read.
const (
	metricDeadline    = "headgate_upstream_deadline_seconds"
	metricPropagation = "headgate_backpressure_propagation_seconds"
	metricHeld        = "headgate_upstream_requests_held"
)

// scrape reads the gateway's metrics.
func (l *lab) scrape() (metrics, error) {
	resp, err := l.client.Get("http://" + rig.Loopback(l.ports.admin) + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	return parseMetrics(resp.Body)
}

func parseMetrics(r io.Reader) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(r)
}

// of returns a family's metric of a cluster; nil when there is none.
func (m metrics) of(family, cluster string) *dto.Metric {
	for _, one := range m[family].GetMetric() {
		for _, label := range one.GetLabel() {
			if label.GetName() == "cluster" && label.GetValue() == cluster {
				return one
			}
		}
	}
	return nil
}

// gauge returns a gauge of a cluster; 0 when there is none.
func (m metrics) gauge(family, cluster string) float64 {
	return m.of(family, cluster).GetGauge().GetValue()
}

// unbounded is the upper bound of the bar that has none: JSON has no infinity.
const unbounded = 1e12

// bucket is one bar of a histogram.
type bucket struct {
	Upper float64 `json:"le"` // seconds
	Count uint64  `json:"count"`
}

// histogram returns a histogram of a cluster, bar by bar.
func (m metrics) histogram(family, cluster string) []bucket {
	h := m.of(family, cluster).GetHistogram()
	if h == nil {
		return nil
	}
	var bars []bucket
	var below uint64
	for _, b := range h.GetBucket() {
		bars = append(bars, bucket{min(b.GetUpperBound(), unbounded), b.GetCumulativeCount() - below})
		below = b.GetCumulativeCount()
	}
	return bars
}

// since returns what was added to a histogram.
func since(after, before []bucket) []bucket {
	bars := make([]bucket, len(after))
	copy(bars, after)
	for i := range bars {
		if i < len(before) {
			bars[i].Count -= before[i].Count
		}
	}
	return bars
}

// plus adds two histograms.
func plus(x, y []bucket) []bucket {
	if len(x) == 0 {
		return y
	}
	bars := make([]bucket, len(x))
	copy(bars, x)
	for i := range bars {
		if i < len(y) {
			bars[i].Count += y[i].Count
		}
	}
	return bars
}

// count is how many values a histogram has.
func count(bars []bucket) uint64 {
	var n uint64
	for _, b := range bars {
		n += b.Count
	}
	return n
}

// quantile estimates the value that the share q of all stays below, in seconds:
// within a bar they count as evenly spread. It is 0 of none.
func quantile(bars []bucket, q float64) float64 {
	rank := q * float64(count(bars))
	if rank == 0 {
		return 0
	}
	var seen, lower float64
	for _, b := range bars {
		if n := float64(b.Count); n > 0 && seen+n >= rank {
			if b.Upper == unbounded {
				return lower
			}
			return lower + (b.Upper-lower)*(rank-seen)/n
		}
		seen += float64(b.Count)
		lower = b.Upper
	}
	return lower
}
