//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/headgate/headgate/test/bench/rig"
)

// result is everything that was measured. The raw samples are kept as lines of
// JSON, so that one experiment can be repeated without the others.
type result struct {
	CPUs     int               `json:"cpus"`
	Kernel   string            `json:"kernel"`
	Versions map[string]string `json:"versions"`
	Skipped  map[string]string `json:"skipped,omitempty"` // peers that are not here, and why
	// Measured says of each experiment, by its name, how its samples came about.
	Measured map[string]conditions `json:"measured"`

	Peaks      []peakSample       `json:"-"`
	Levels     []levelSample      `json:"-"`
	Scaling    []scalingSample    `json:"-"`
	Pressure   []pressureSample   `json:"-"`
	Memory     []memorySample     `json:"-"`
	Storm      []stormSample      `json:"-"`
	Exhaustion []exhaustionSample `json:"-"`
}

// conditions are those in which an experiment was measured.
type conditions struct {
	Time     string     `json:"time"` // when the run began of which it was a part
	Quick    bool       `json:"quick"`
	Runs     int        `json:"runs"`
	Duration string     `json:"duration"` // of each measurement; twice that in Table 3
	Seed     uint64     `json:"seed"`
	Load     [2]float64 `json:"load_average"`    // before and after the run
	Notes    []string   `json:"notes,omitempty"` // what went wrong
}

// The kinds of lines in the file of samples.
const (
	kindRun        = "run"
	kindPeak       = "peak"
	kindLevel      = "level"
	kindScaling    = "scaling"
	kindPressure   = "pressure"
	kindMemory     = "memory"
	kindStorm      = "storm"
	kindExhaustion = "exhaustion"
)

// line is one line of the file of samples.
type line struct {
	Kind  string          `json:"kind"`
	Value json.RawMessage `json:"value"`
}

// encode returns the result as lines of JSON.
func (r *result) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	var failed error
	put := func(kind string, v any) {
		value, err := json.Marshal(v)
		if err == nil {
			err = enc.Encode(line{kind, value})
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	put(kindRun, r)
	putAll(put, kindPeak, r.Peaks)
	putAll(put, kindLevel, r.Levels)
	putAll(put, kindScaling, r.Scaling)
	putAll(put, kindPressure, r.Pressure)
	putAll(put, kindMemory, r.Memory)
	putAll(put, kindStorm, r.Storm)
	putAll(put, kindExhaustion, r.Exhaustion)
	return b.Bytes(), failed
}

func putAll[S any](put func(string, any), kind string, samples []S) {
	for _, s := range samples {
		put(kind, s)
	}
}

// decode reads what encode wrote.
func decode(data []byte) (*result, error) {
	r := &result{}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		var l line
		err := json.Unmarshal(sc.Bytes(), &l)
		if err == nil {
			switch l.Kind {
			case kindRun:
				err = json.Unmarshal(l.Value, r)
			case kindPeak:
				err = add(&r.Peaks, l.Value)
			case kindLevel:
				err = add(&r.Levels, l.Value)
			case kindScaling:
				err = add(&r.Scaling, l.Value)
			case kindPressure:
				err = add(&r.Pressure, l.Value)
			case kindMemory:
				err = add(&r.Memory, l.Value)
			case kindStorm:
				err = add(&r.Storm, l.Value)
			case kindExhaustion:
				err = add(&r.Exhaustion, l.Value)
			default:
				err = fmt.Errorf("unknown kind %q", l.Kind)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r, sc.Err()
}

func add[S any](to *[]S, value json.RawMessage) error {
	var s S
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	*to = append(*to, s)
	return nil
}

// read reads a file of samples.
func read(path string) (*result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// median is the median, value by value, of the samples that are chosen.
func median[S any](samples []S, chosen func(S) bool, value func(S) float64) float64 {
	var some []S
	for _, s := range samples {
		if chosen(s) {
			some = append(some, s)
		}
	}
	return rig.MedianOf(some, value)
}
