//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// result is everything that a run measured. A scenario that did not run is nil.
type result struct {
	Time        string             `json:"time"`
	Version     string             `json:"version"`
	Go          string             `json:"go"`
	Kubernetes  string             `json:"kubernetes"`
	CPUs        int                `json:"cpus"`
	Kernel      string             `json:"kernel"`
	Load        [2]float64         `json:"load_average"` // before and after
	Seconds     float64            `json:"seconds"`
	Attached    *attachedResult    `json:"attached,omitempty"`
	Idle        *idleResult        `json:"idle,omitempty"`
	Propagation *propagationResult `json:"propagation,omitempty"`
	Change      *changeResult      `json:"change,omitempty"`
	Churn       *churnResult       `json:"churn,omitempty"`

	began time.Time
}

func newResult() result {
	now := time.Now()
	return result{
		Time: now.UTC().Format("2006-01-02 15:04 UTC"), Go: runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Kernel: kernel(), Load: [2]float64{loadAverage()}, began: now,
	}
}

func (r *result) finish() {
	r.Seconds = time.Since(r.began).Seconds()
	r.Load[1] = loadAverage()
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return n
}

// problems are what was wrong, by scenario; figures are none.
func (r *result) problems() map[string][]string {
	out := make(map[string][]string)
	if r.Attached != nil {
		out["attached"] = r.Attached.problems()
	}
	if r.Idle != nil {
		out["idle"] = r.Idle.problems()
	}
	if r.Propagation != nil {
		out["propagation"] = r.Propagation.problems()
	}
	if r.Change != nil {
		out["change"] = r.Change.problems()
	}
	if r.Churn != nil {
		out["churn"] = r.Churn.problems()
	}
	return out
}

// write replaces scale.json and scale.md.
func (r *result) write(dir string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "scale.json"), text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "scale.md"), []byte(r.markdown()), 0o644)
}
