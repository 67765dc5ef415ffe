//go:build linux

package rig

import "time"

// RateResult is what the load tool's `rate` reports: the outcome of an open-loop
// run. Latencies are in microseconds from the moment that a request was due, so
// that a stall of the proxy is counted for every request that it delayed (no
// coordinated omission).
type RateResult struct {
	Rate     float64        `json:"rate"`     // asked for, requests per second
	Achieved float64        `json:"achieved"` // answered well, requests per second
	Requests uint64         `json:"requests"` // answered well
	Errors   uint64         `json:"errors"`   // broken connections and other statuses than 200
	Statuses map[int]uint64 `json:"statuses,omitempty"`
	Unsent   uint64         `json:"unsent"` // due, but without an answer at the end
	Mean     float64        `json:"mean_us"`
	P50      float64        `json:"p50_us"`
	P90      float64        `json:"p90_us,omitempty"`
	P99      float64        `json:"p99_us"`
	P999     float64        `json:"p999_us"`
	Max      float64        `json:"max_us,omitempty"`
	P99All   float64        `json:"p99_all_us"` // with answers of other statuses
	Slots    []Slot         `json:"slots,omitempty"`
}

// Slot is what ended in one span of time.
type Slot struct {
	Good   uint64 `json:"good"`
	Errors uint64 `json:"errors"`
}

// ErrorRate is the part of the requests that were due and got no good answer.
func (r RateResult) ErrorRate() float64 {
	bad := float64(r.Errors + r.Unsent)
	if bad == 0 {
		return 0
	}
	return bad / (bad + float64(r.Requests))
}

// Workload is how the backend of the load tool's `work` behaves. It is replaced
// as a whole by a POST of its JSON to /control.
type Workload struct {
	// Limit is how many requests it serves at once; one more is refused with 503
	// at once, as by a server whose threads are all busy. 0 means no limit.
	Limit int `json:"limit"`
	// Mean is the service time.
	Mean time.Duration `json:"mean_ns"`
	// Exponential tells that service times are by chance, with that mean;
	// otherwise each is as long.
	Exponential bool `json:"exponential"`
	// SlowShare is the part of the requests, by chance, that takes Slow instead.
	SlowShare float64       `json:"slow_share"`
	Slow      time.Duration `json:"slow_ns"`
	// Hang tells that nothing is answered until the next workload.
	Hang bool `json:"hang"`
	// Seed is of the chance.
	Seed uint64 `json:"seed"`
}

// WorkStats is what that backend did since the last GET of /stats.
type WorkStats struct {
	Served  uint64  `json:"served"`
	Refused uint64  `json:"refused"`
	Left    uint64  `json:"left"`      // by their client, before they were served
	Busy    float64 `json:"busy"`      // requests at once, in the mean over the time
	Most    int     `json:"most"`      // at once
	Service float64 `json:"service_s"` // of those that were served, in the mean
}
