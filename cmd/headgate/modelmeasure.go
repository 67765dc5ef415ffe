package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measured is what two scrapes of a running gateway say.
type measured struct {
	Interval      float64 `json:"interval"` // seconds between them
	Lambda        float64 `json:"lambda"`   // requests per second
	Mu            float64 `json:"mu"`       // requests per second of busy worker
	Workers       int     `json:"workers"`  // loops
	Cluster       string  `json:"cluster,omitempty"`
	ClusterLambda float64 `json:"clusterLambda,omitempty"` // its answers per second
	Upstream      float64 `json:"upstream,omitempty"`      // its mean time to answer, in seconds
	Pool          int     `json:"pool,omitempty"`
	// CVs of the stages, 0 where they are not known.
	ArrivalCV  float64 `json:"arrivalCV,omitempty"`
	ServiceCV  float64 `json:"serviceCV,omitempty"`
	UpstreamCV float64 `json:"upstreamCV,omitempty"`
}

// samples are the values of one scrape, by name and then by the value of the
// label loop, cluster or stage, "" where there is neither.
type samples map[string]map[string]float64

// The metrics that a plan needs.
const (
	metricRequests  = "headgate_loop_requests_total"
	metricBusy      = "headgate_loop_busy_seconds_total"
	metricPool      = "headgate_upstream_pool_size"
	metricUpstreamN = "headgate_upstream_response_seconds_count"
	metricUpstreamS = "headgate_upstream_response_seconds_sum"
	metricArrivalCV = "headgate_stage_arrival_cv"
	metricServiceCV = "headgate_stage_service_cv"
)

// maxScrape bounds what is read of a scrape.
const maxScrape = 64 << 20

// measure scrapes the gateway twice.
func measure(ctx context.Context, url, cluster string, interval time.Duration) (*measured, error) {
	if interval <= 0 {
		return nil, fmt.Errorf("an interval of %v: use a positive one", interval)
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/metrics") + "/metrics"
	client := &http.Client{Timeout: 10 * time.Second}
	before, err := scrape(ctx, client, url)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := scrape(ctx, client, url)
	if err != nil {
		return nil, err
	}
	return compare(before, after, time.Since(start), cluster)
}

// scrape reads the metrics once.
func scrape(ctx context.Context, client *http.Client, url string) (samples, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return parseSamples(io.LimitReader(resp.Body, maxScrape))
}

// parseSamples reads Prometheus' text format, as far as a plan needs it.
func parseSamples(r io.Reader) (samples, error) {
	wanted := []string{metricRequests, metricBusy, metricPool, metricUpstreamN, metricUpstreamS, metricArrivalCV, metricServiceCV}
	s := make(samples)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		if !slices.Contains(wanted, name) {
			continue
		}
		labels, value, ok := strings.Cut(rest, "} ")
		if !ok {
			return nil, fmt.Errorf("not a sample: %q", lines.Text())
		}
		// The names of loops and clusters need no escapes.
		_, label, _ := strings.Cut(labels, `="`)
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("not a sample: %q", lines.Text())
		}
		if s[name] == nil {
			s[name] = make(map[string]float64)
		}
		s[name][strings.TrimSuffix(label, `"`)] = v
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(s[metricBusy]) == 0 {
		return nil, fmt.Errorf("no %s: is this a gateway's admin server?", metricBusy)
	}
	return s, nil
}

// compare derives rates and times from two scrapes.
func compare(before, after samples, elapsed time.Duration, cluster string) (*measured, error) {
	grown := func(name, label string) float64 { return after[name][label] - before[name][label] }
	var requests, busy float64
	for loop := range after[metricBusy] {
		requests += grown(metricRequests, loop)
		busy += grown(metricBusy, loop)
	}
	if requests < 0 || busy < 0 {
		return nil, errors.New("the gateway was restarted between the scrapes")
	}
	if requests == 0 || busy == 0 {
		return nil, fmt.Errorf("no request in %v: there is nothing to measure", elapsed.Round(time.Millisecond))
	}
	m := &measured{
		Interval: elapsed.Seconds(),
		Lambda:   requests / elapsed.Seconds(),
		Mu:       requests / busy,
		Workers:  len(after[metricBusy]),
	}
	if cluster != "" {
		if _, ok := after[metricPool][cluster]; !ok {
			names := make([]string, 0, len(after[metricPool]))
			for name := range after[metricPool] {
				names = append(names, name)
			}
			slices.Sort(names)
			return nil, fmt.Errorf("no cluster %q; there are: %s", cluster, strings.Join(names, ", "))
		}
		if grown(metricUpstreamN, cluster) <= 0 {
			return nil, fmt.Errorf("cluster %s gave no answer in %v", cluster, elapsed.Round(time.Millisecond))
		}
	}
	most := 0.0
	for name, pool := range after[metricPool] {
		n, sum := grown(metricUpstreamN, name), grown(metricUpstreamS, name)
		if cluster != "" && name != cluster || n <= 0 || sum <= 0 || pool < 1 {
			continue
		}
		if n > most || n == most && name < m.Cluster {
			most = n
			m.Cluster, m.ClusterLambda, m.Pool = name, n/elapsed.Seconds(), int(pool)
			m.Upstream = sum / n
		}
	}
	// What a request costs a loop, and how long it keeps its place in a pool.
	m.ArrivalCV, m.ServiceCV, m.UpstreamCV = after[metricArrivalCV]["loop"], after[metricServiceCV]["loop"], after[metricServiceCV]["S4"]
	return m, nil
}
