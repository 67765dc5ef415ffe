//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// lab is the machine with what all experiments share: programs, addresses, the
// upstreams and the loader.
type lab struct {
	opt   options
	cpus  int
	dir   string // scratch, removed at the end
	tools map[string]string
	peers []peer
	ports ports
	fast  int // the upstream of Tables 1, 2 and 4: nginx, 512 bytes of JSON
	work  int // the upstream of Table 3 and 5.5: `load work`

	upstreams []*rig.Process
	placed    int // workers that the upstreams were placed for; 0 when they don't run
	load      *rig.Loader
	client    *http.Client
	result    *result
	running   string // the experiment
}

func newLab(opt options, root, scratch string) (*lab, error) {
	l := &lab{opt: opt, cpus: runtime.NumCPU(), dir: scratch, client: &http.Client{Timeout: 10 * time.Second}, result: &result{Measured: make(map[string]conditions)}}
	// Workers that run as another user must be able to enter it.
	if err := os.Chmod(scratch, 0o755); err != nil {
		return nil, err
	}
	for _, port := range []*int{&l.ports.http, &l.ports.admin, &l.fast, &l.work} {
		var err error
		if *port, err = rig.FreePort(); err != nil {
			return nil, err
		}
	}
	tools, missing := rig.Installed("nginx", "wrk", "apache2", "httpd")
	if tools["apache2"] == "" && tools["httpd"] != "" { // as others than Debian call it
		tools["apache2"] = tools["httpd"]
	}
	for name, pkg := range map[string]string{"load": "./test/bench/load", "headgate": "./cmd/headgate"} {
		tools[name] = filepath.Join(scratch, "bin", name)
		if err := rig.Build(root, pkg, tools[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	l.tools = tools
	for _, name := range []string{"nginx", "wrk"} { // the upstream and the loader
		if tools[name] == "" {
			return nil, fmt.Errorf("%s: %s", name, missing[name])
		}
	}
	l.result.Skipped = make(map[string]string)
	l.result.Versions = make(map[string]string)
	for _, p := range peers {
		lacks := ""
		for _, tool := range p.tools {
			if tools[tool] == "" {
				lacks = tool + ": " + missing[tool]
			}
		}
		if lacks != "" {
			l.result.Skipped[p.name] = lacks
			l.logf("skipping %s: %s", p.name, lacks)
			continue
		}
		l.peers = append(l.peers, p)
		l.result.Versions[p.name] = p.version(l)
	}
	return l, nil
}

// close ends the upstreams.
func (l *lab) close() {
	for _, p := range l.upstreams {
		p.Stop()
	}
	l.upstreams, l.placed = nil, 0
}

// peer returns a peer that is here.
func (l *lab) peer(name string) (peer, bool) {
	for _, p := range l.peers {
		if p.name == name {
			return p, true
		}
	}
	return peer{}, false
}

// some returns those of the named peers that are here.
func (l *lab) some(names ...string) []peer {
	var ps []peer
	for _, name := range names {
		if p, ok := l.peer(name); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

// placement gives a proxy the first CPUs and the load the rest, when both get
// as many as the proxy has workers, or at least one. Else nothing is bound.
func placement(cpus, workers int) (proxy, load []int) {
	if cpus < 2*workers {
		return nil, nil
	}
	for cpu := range cpus {
		if cpu < workers {
			proxy = append(proxy, cpu)
		} else {
			load = append(load, cpu)
		}
	}
	return proxy, load
}

// startUpstreams starts both upstreams, or leaves them when they are placed as
// wanted.
func (l *lab) startUpstreams(workers int) error {
	if l.placed == workers {
		return nil
	}
	l.close()
	_, cpus := placement(l.cpus, workers)
	l.load = &rig.Loader{Tools: l.tools, Dir: l.dir, Host: hostName, CPUs: cpus}
	config := rig.NginxHead(l.dir, "upstream", workers) + rig.LongKeepAlive + fmt.Sprintf(`
  server {
    listen 127.0.0.1:%d backlog=4096;
    default_type application/json;
    location / { return 200 '%s'; }
  }
}
`, l.fast, rig.Body512())
	path := filepath.Join(l.dir, "upstream.conf")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return err
	}
	fast, err := rig.Launch(cpus, l.tools["nginx"], "-c", path, "-p", l.dir)
	if err != nil {
		return err
	}
	l.upstreams = append(l.upstreams, fast)
	work, err := l.load.Start("work", "-listen", rig.Loopback(l.work))
	if err != nil {
		return err
	}
	l.upstreams = append(l.upstreams, work)
	l.placed = workers
	if err := fast.AwaitPort(rig.Loopback(l.fast)); err != nil {
		return err
	}
	return work.AwaitPort(rig.Loopback(l.work))
}

// with runs f while a peer runs.
func (l *lab) with(p peer, s setup, f func(*rig.Process) error) error {
	if err := l.startUpstreams(s.workers); err != nil {
		return err
	}
	cpus, _ := placement(l.cpus, s.workers)
	proc, err := p.start(l, s, cpus)
	if err != nil {
		return err
	}
	defer proc.Stop()
	if err := proc.AwaitPort(rig.Loopback(l.ports.http)); err != nil {
		return err
	}
	if err := l.awaitAnswer(s.routes[0].prefix); err != nil {
		return fmt.Errorf("%w: %s", err, proc.Messages())
	}
	return f(proc)
}

// awaitAnswer waits until the proxy serves a path.
func (l *lab) awaitAnswer(path string) error {
	last := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequest(http.MethodGet, "http://"+rig.Loopback(l.ports.http)+path, nil)
		if err != nil {
			return err
		}
		req.Host, req.Close = hostName, true
		resp, err := l.client.Do(req)
		if err != nil {
			last = err.Error()
			continue
		}
		resp.Body.Close()
		if last = resp.Status; resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s is not served: %s", path, last)
}

// control changes the workload.
func (l *lab) control(w rig.Workload) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	resp, err := l.client.Post("http://"+rig.Loopback(l.work)+"/control", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("control: %s", resp.Status)
	}
	return nil
}

// stats reads what the upstream did, and begins anew.
func (l *lab) stats() (rig.WorkStats, error) {
	var s rig.WorkStats
	resp, err := l.client.Get("http://" + rig.Loopback(l.work) + "/stats")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// rate is a constant-rate or Poisson load.
type rate struct {
	path     string
	rate     float64
	duration time.Duration
	warmup   time.Duration
	conns    int
	lazy     bool // connections only when needed
	poisson  bool
	seed     uint64
	slots    time.Duration
}

// args are those of the load tool.
func (r rate) args(addr string) []string {
	args := []string{"rate", "-addr", addr, "-host", hostName, "-path", r.path, "-conns", strconv.Itoa(r.conns),
		"-rate", fmt.Sprintf("%.1f", r.rate), "-duration", r.duration.String(), "-warmup", r.warmup.String(), "-slots", r.slots.String()}
	if r.lazy {
		args = append(args, "-lazy")
	}
	if r.poisson {
		args = append(args, "-poisson", "-seed", strconv.FormatUint(r.seed, 10))
	}
	return args
}

// openLoop runs a load on the proxy to its end.
func (l *lab) openLoop(r rate) (rig.RateResult, error) { return l.openLoopAt(l.ports.http, r) }

// openLoopAt runs a load on any port to its end.
func (l *lab) openLoopAt(port int, r rate) (rig.RateResult, error) {
	var res rig.RateResult
	err := l.load.Run(r.duration+r.warmup, &res, r.args(rig.Loopback(port))...)
	return res, err
}

func (l *lab) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// note keeps what went wrong for the result.
func (l *lab) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.logf("%s", text)
	c := l.result.Measured[l.running]
	c.Notes = append(c.Notes, strings.ReplaceAll(strings.TrimSpace(text), "\n", " "))
	l.result.Measured[l.running] = c
}
