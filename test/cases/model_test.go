package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// `headgate model` measures a gateway that runs, by its admin address, and plans
// with what it has seen.
func TestModelOfARunningGateway(t *testing.T) {
	const takes = 20 * time.Millisecond
	const seen = 0.019 // of that at least: a loop's clock has ticks of 1 ms
	be := newBackend(t, "be")
	be.set(be.wait(takes))
	g := start(t, options{args: []string{"--pool-size", "7"}}, be.manifest(), simpleRoute("be", be))
	stop, ended := make(chan struct{}), make(chan int, 1)
	c := dial(t, g.addr)
	c.patient(2 * time.Minute)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				ended <- n
				return
			default:
			}
			if err := c.trySend("GET / HTTP/1.1\r\nHost: be\r\n\r\n"); err != nil {
				t.Error(err)
			} else if r, err := readResponse(c.br, "GET"); err != nil || r.status != 200 {
				t.Errorf("got %v, %v", r, err)
			} else {
				continue
			}
			ended <- n
			return
		}
	}()
	// The stages are shown when a window of them is over.
	eventually(t, time.Minute, func() error {
		for _, name := range []string{"arrival_rate", "service_seconds", "utilisation", "arrival_cv", "service_cv", "predicted_seconds"} {
			for _, stage := range []string{"S4", "loop"} {
				if v := g.metric(t, "headgate_stage_"+name+`{stage="`+stage+`"}`); v <= 0 {
					return fmt.Errorf("%s of %s is %v", name, stage, v)
				}
			}
		}
		return nil
	})
	for _, name := range []string{"service_seconds", "predicted_seconds"} {
		if v := g.metric(t, "headgate_stage_"+name+`{stage="S4"}`); v < seen {
			t.Errorf("%s of S4 is %v, of a backend that takes %v", name, v, takes)
		}
	}
	plot := filepath.Join(t.TempDir(), "plan.svg")
	cmd := exec.Command(os.Getenv(binaryEnv), "model", "--admin", g.admin, "--interval", "2s", "--output", "json", "--plot", plot)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	close(stop)
	requests := <-ended
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var plan struct {
		Capacity   float64
		Bottleneck string
		Rows       []struct{ Load float64 }
		Measured   struct {
			Workers, Pool                    int
			Cluster                          string
			Lambda, Mu, Upstream, Interval   float64
			ArrivalCV, ServiceCV, UpstreamCV float64
		}
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := plan.Measured
	if m.Workers != 2 || m.Cluster != "default/be:80" || m.Pool != 7 || m.Upstream < seen || m.Mu <= 0 {
		t.Errorf("%+v", m)
	}
	if m.ArrivalCV <= 0 || m.ServiceCV <= 0 || m.UpstreamCV <= 0 {
		t.Errorf("the CVs are %v, %v and %v", m.ArrivalCV, m.ServiceCV, m.UpstreamCV)
	}
	if n := m.Lambda * m.Interval; n < 1 || n > float64(requests+1) {
		t.Errorf("%v requests in %v s were seen, %d were sent", n, m.Interval, requests)
	}
	// Seven places of 20 ms at least, or what the loops can do.
	if most := 7 / seen; plan.Capacity <= 0 || plan.Capacity > most {
		t.Errorf("a capacity of %v per second, by the %s; the pool has %v", plan.Capacity, plan.Bottleneck, most)
	}
	if last := plan.Rows[len(plan.Rows)-1].Load; last != m.Lambda {
		t.Errorf("the last load is %v, want that which was measured, %v", last, m.Lambda)
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "</svg>") {
		t.Errorf("the plot: %v, %d bytes", err, len(svg))
	}
}
