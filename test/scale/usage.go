//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what the controller has used since it started, and what it holds.
type usage struct {
	at        time.Time
	cpu       time.Duration
	rss       int64 // bytes, with the pages of the program's file
	anonymous int64 // bytes of it that are the process's own
	allocated float64
	objects   float64
	gcs       float64
}

// use reads it from /proc and from the metrics.
func (c *controller) use() (usage, error) {
	u := usage{at: time.Now()}
	proc := fmt.Sprintf("/proc/%d/", c.command.Process.Pid)
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		return u, err
	}
	if u.cpu, err = cpuTime(string(stat)); err != nil {
		return u, err
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return u, err
	}
	if u.rss, err = kilobytes(status, "VmRSS:"); err != nil {
		return u, err
	}
	if u.anonymous, err = kilobytes(status, "RssAnon:"); err != nil {
		return u, err
	}
	metrics, err := c.get("/metrics")
	if err != nil {
		return u, err
	}
	for name, into := range map[string]*float64{
		"go_memstats_alloc_bytes_total": &u.allocated,
		"go_memstats_mallocs_total":     &u.objects,
		"go_gc_duration_seconds_count":  &u.gcs,
	} {
		if *into, err = metric(metrics, name); err != nil {
			return u, err
		}
	}
	return u, nil
}

// live is how much of the heap is in use, right after a collection.
func (c *controller) live() (float64, error) {
	if _, err := c.get("/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	metrics, err := c.get("/metrics")
	if err != nil {
		return 0, err
	}
	return metric(metrics, "go_memstats_heap_alloc_bytes")
}

// cpuTime reads user and system time, in ticks of 10 ms, from a line of
// /proc/PID/stat (proc(5)).
func cpuTime(stat string) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')') // the name may hold anything
	fields := strings.Fields(stat[end+1:])  // from field 3 on
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("stat line %q", stat)
	}
	var sum time.Duration
	for _, field := range []int{14, 15} {
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat line %q: %w", stat, err)
		}
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum, nil
}

// kilobytes reads a line of /proc/PID/status, in bytes.
func kilobytes(status []byte, name string) (int64, error) {
	_, rest, ok := bytes.Cut(status, []byte("\n"+name))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("/proc has no %s", name)
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return n << 10, err
}

// metric reads a metric without labels from Prometheus' text format.
func metric(text []byte, name string) (float64, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the controller has no metric %s", name)
}

// load is the use over a time.
type load struct {
	Seconds        float64 `json:"seconds"`
	CPUPercent     float64 `json:"cpu_percent"` // of one CPU
	RSS            float64 `json:"rss_mib"`
	Anonymous      float64 `json:"anonymous_mib"`
	AllocatedPerS  float64 `json:"allocated_mib_per_s"`
	ObjectsPerS    float64 `json:"objects_per_s"`
	Collections    float64 `json:"collections"`
	LiveHeap       float64 `json:"live_heap_mib,omitempty"`
	EditsPerSecond float64 `json:"edits_per_s"`
}

// between is the use from one point to a later one.
func between(from, to usage) load {
	s := to.at.Sub(from.at).Seconds()
	return load{
		Seconds: s, CPUPercent: 100 * (to.cpu - from.cpu).Seconds() / s,
		RSS: mib(float64(to.rss)), Anonymous: mib(float64(to.anonymous)),
		AllocatedPerS: mib(to.allocated-from.allocated) / s, ObjectsPerS: (to.objects - from.objects) / s,
		Collections: to.gcs - from.gcs,
	}
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }
