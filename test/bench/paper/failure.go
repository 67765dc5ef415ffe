//go:build linux

package main

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// fixedTimeout is that of the paper's baseline (5.5).
const fixedTimeout = 5 * time.Second

// The storm's load, and how the upstream answers before it and in it. Half of
// the answers at 10 ms and half at 214 ms is a mean of 112 ms, the paper's.
const (
	stormRate = 1000
	calmTime  = 10 * time.Millisecond
	slowTime  = 214 * time.Millisecond
	// beta of Eq. 13.
	beta = 2.5
)

// storm is one kind of it.
type storm struct {
	name  string
	title string
	slow  time.Duration
	flags []string
}

var storms = []storm{
	// The least deadline is below the slow answers: at first they are cut.
	{"slow", "half of the answers take 214 ms instead of 10 ms", slowTime, []string{"--adaptive-min", "50ms"}},
	// What never comes must be given up some time: at 1 s here.
	{"hang", "half of the requests are never answered", time.Hour, []string{"--adaptive-min", "50ms", "--adaptive-max", "1s"}},
}

// stormSample is a proxy before and in a storm.
type stormSample struct {
	Storm  string         `json:"storm"`
	Peer   string         `json:"peer"`
	Run    int            `json:"run"`
	Length float64        `json:"length_s"`
	Before rig.RateResult `json:"before"`
	During rig.RateResult `json:"during"` // with slots, in the first run
	// Mean is that of the upstream's answers in the storm, in seconds.
	Mean float64 `json:"mean_s"`
	// Deadlines are the gateway's adaptive ones.
	Deadlines []deadline `json:"deadlines,omitempty"`
}

// deadline is an adaptive timeout at a time of the storm; both in seconds.
type deadline struct {
	At      float64 `json:"at_s"`
	Timeout float64 `json:"timeout_s"`
}

// slotLength is that of the counts over time.
const slotLength = 100 * time.Millisecond

func (l *lab) runStorm() error {
	for run := range l.opt.failureRuns {
		for _, st := range storms {
			for _, p := range l.some(headgate, nginx, apache) {
				s, err := l.storm(st, p, run)
				if err != nil {
					l.note("storm %s, %s: %v", st.name, p.name, err)
					continue
				}
				s.Storm, s.Peer, s.Run = st.name, p.name, run
				if run > 0 {
					s.During.Slots, s.Deadlines = nil, thin(s.Deadlines)
				}
				l.result.Storm = append(l.result.Storm, s)
				l.logf("storm  run %d %-5s %-10s %4.0f -> %4.0f good/s  p99 %7.0f us (all %7.0f)  errors %.1f %%",
					run+1, st.name, p.name, s.Before.Achieved, s.During.Achieved, s.During.P99, s.During.P99All, 100*s.During.ErrorRate())
			}
		}
	}
	return nil
}

// thin keeps a few deadlines of runs that are not drawn: the first two seconds
// and the last one.
func thin(ds []deadline) []deadline {
	var kept []deadline
	for i, d := range ds {
		if d.At < 2 || i == len(ds)-1 {
			kept = append(kept, d)
		}
	}
	return kept
}

func (l *lab) storm(st storm, p peer, run int) (stormSample, error) {
	var s stormSample
	if err := l.startUpstreams(1); err != nil {
		return s, err
	}
	calm := rig.Workload{Mean: calmTime, Seed: l.opt.seed + uint64(run)}
	if err := l.control(calm); err != nil {
		return s, err
	}
	defer l.control(calm)
	set := setup{workers: 1, timeout: fixedTimeout, routes: []route{{name: "work", prefix: "/", port: l.work}}, flags: st.flags}
	err := l.with(p, set, func(*rig.Process) error {
		load := rate{path: "/", rate: stormRate, duration: l.opt.duration, warmup: time.Second, conns: 6000, lazy: true}
		var err error
		if s.Before, err = l.openLoop(load); err != nil {
			return err
		}
		// The storm begins when the loader begins to count.
		load.duration, load.slots = l.opt.storm, slotLength
		loader, err := l.load.Start(load.args(rig.Loopback(l.ports.http))...)
		if err != nil {
			return err
		}
		defer loader.Stop()
		time.Sleep(load.warmup)
		if _, err := l.stats(); err != nil {
			return err
		}
		rough := calm
		rough.SlowShare, rough.Slow = 0.5, st.slow
		if err := l.control(rough); err != nil {
			return err
		}
		began := time.Now()
		if p.name == headgate {
			if s.Deadlines, err = l.watchDeadlines(began, load.duration); err != nil {
				return err
			}
		}
		out, err := loader.Line(load.duration + time.Minute)
		if err != nil {
			return err
		}
		if err := decodeLine(out, &s.During); err != nil {
			return err
		}
		stats, err := l.stats()
		s.Mean, s.Length = stats.Service, load.duration.Seconds()
		return err
	})
	return s, err
}

// watchDeadlines samples the adaptive timeout.
func (l *lab) watchDeadlines(began time.Time, d time.Duration) ([]deadline, error) {
	var ds []deadline
	for time.Since(began) < d {
		at := time.Since(began)
		m, err := l.scrape()
		if err != nil {
			return nil, err
		}
		ds = append(ds, deadline{math.Round(at.Seconds()*1e4) / 1e4, m.gauge(metricDeadline, cluster("work"))})
		step := 50 * time.Millisecond // in the first second; then it is settled
		if at > time.Second {
			step *= 4
		}
		time.Sleep(step)
	}
	return ds, nil
}

// converged is when the deadlines first came within a tenth of what they should
// be, in seconds; negative when they did not.
func converged(ds []deadline, want float64) float64 {
	for _, d := range ds {
		if math.Abs(d.Timeout-want) <= want/10 {
			return d.At
		}
	}
	return -1
}

// The exhaustion: an upstream that hangs, with a small pool, beside one that is
// well.
const (
	hungRequests = 5000
	hungPool     = 50
	healthyRate  = 2000
	probeRate    = 200
	// waitingPairs is how often the healthy upstream is measured with and without
	// those that wait, in turns: its P99 moves by more than a tenth by itself.
	waitingPairs = 3
	// waitingLonger is how many times as long each of them takes as other
	// measurements: the slowest of a hundred of 4,000 requests are too few.
	waitingLonger = 4
)

// exhaustionSample is a proxy with all places of one upstream taken.
type exhaustionSample struct {
	Peer        string         `json:"peer"`
	Run         int            `json:"run"`
	Undisturbed rig.RateResult `json:"undisturbed"` // of the healthy upstream
	Disturbed   rig.RateResult `json:"disturbed"`
	// Waiting are pairs without and with 5,000 requests that all wait in the
	// gateway: nobody is refused, so nobody comes again.
	Waiting []waitingPair `json:"waiting,omitempty"`
	// Heeded is the same as Disturbed while those that are refused heed Retry-After, which only
	// the gateway sends.
	Heeded *rig.RateResult `json:"heeded,omitempty"`
	// Past is the same load past the proxy, straight to the healthy upstream, beside
	// the same clients: what their CPU adds to every measurement.
	Past      rig.RateResult `json:"past"`
	RSSBefore float64        `json:"rss_before_mib"`
	RSS       float64        `json:"rss_mib"`
	CPU       float64        `json:"cpu_percent"` // disturbed, of one CPU
	Refused   int64          `json:"refused"`     // of the requests to the one that hangs
	Failed    int64          `json:"failed"`
	// Recovery is from the upstream's recovery to the first tenth of a second from
	// which on 95 % of its answers are good; negative when there was none.
	Recovery float64 `json:"recovery_s"`
}

// waitingPair is the healthy upstream without and with requests to the other one
// that wait.
type waitingPair struct {
	Undisturbed rig.RateResult `json:"undisturbed"`
	Beside      rig.RateResult `json:"beside"`
}

// heeded is zero of those that do not say when to come again.
func (s exhaustionSample) heeded() rig.RateResult {
	if s.Heeded == nil {
		return rig.RateResult{}
	}
	return *s.Heeded
}

func (l *lab) runExhaustion() error {
	for run := range l.opt.failureRuns {
		for _, p := range l.some(headgate, nginx, apache) {
			s, err := l.exhaustion(p, run)
			if err != nil {
				l.note("exhaustion, %s: %v", p.name, err)
				continue
			}
			s.Peer, s.Run = p.name, run
			l.result.Exhaustion = append(l.result.Exhaustion, s)
			for _, pair := range s.Waiting {
				l.logf("hung   run %d %-10s healthy p99 %6.0f -> %7.0f us beside those that wait", run+1, p.name, pair.Undisturbed.P99, pair.Beside.P99)
			}
			l.logf("hung   run %d %-10s healthy p99 %6.0f -> %7.0f (heeded %.0f) us, errors %.1f %%  RSS %.0f -> %.0f MiB  CPU %.0f %%  recovery %.1f s",
				run+1, p.name, s.Undisturbed.P99, s.Disturbed.P99, s.heeded().P99, 100*s.Disturbed.ErrorRate(), s.RSSBefore, s.RSS, s.CPU, s.Recovery)
		}
	}
	return nil
}

func (l *lab) exhaustion(p peer, run int) (exhaustionSample, error) {
	var s exhaustionSample
	if err := l.startUpstreams(1); err != nil {
		return s, err
	}
	well := rig.Workload{Mean: 2 * time.Millisecond, Seed: l.opt.seed + uint64(run)}
	if err := l.control(well); err != nil {
		return s, err
	}
	defer l.control(well)
	pool := 0
	if p.name == headgate {
		pool = hungPool
	}
	set := setup{
		workers: 1, timeout: fixedTimeout,
		routes: []route{{name: "work", prefix: "/hung", port: l.work, pool: pool}, {name: "fast", prefix: "/", port: l.fast}},
		flags:  []string{"--trusted-cidr", "127.0.0.0/8"},
	}
	healthy := rate{path: "/", rate: healthyRate, duration: l.opt.duration, warmup: time.Second, conns: 2000, lazy: true}
	if p.name == headgate {
		var err error
		if s.Waiting, err = l.waiting(p, set, healthy, well); err != nil {
			return s, err
		}
		if err = l.control(well); err != nil {
			return s, err
		}
	}
	err := l.with(p, set, func(proc *rig.Process) error {
		var err error
		if s.Undisturbed, err = l.openLoop(healthy); err != nil {
			return err
		}
		u, err := proc.Use()
		if err != nil {
			return err
		}
		s.RSSBefore = mib(u.RSS)
		if err := l.control(rig.Workload{Hang: true}); err != nil {
			return err
		}
		if p.name == headgate {
			hold, err := l.hang("-heed")
			if err != nil {
				return err
			}
			r, err := l.openLoop(healthy)
			hold.Stop()
			if err != nil {
				return err
			}
			s.Heeded = &r
		}
		hold, err := l.hang()
		if err != nil {
			return err
		}
		defer hold.Stop()
		before, err := proc.Use()
		if err != nil {
			return err
		}
		began := time.Now()
		if s.Disturbed, err = l.openLoop(healthy); err != nil {
			return err
		}
		took := time.Since(began)
		if u, err = proc.Use(); err != nil {
			return err
		}
		s.CPU = 100 * (u.CPU - before.CPU).Seconds() / took.Seconds()
		s.RSS = mib(u.RSS)
		if s.Past, err = l.openLoopAt(l.fast, healthy); err != nil {
			return err
		}
		if s.Recovery, err = l.recovery(well); err != nil {
			return err
		}
		hold.Stdin.Close()
		line, err := hold.Line(30 * time.Second)
		if err != nil {
			return err
		}
		var counts struct {
			Refused int64 `json:"refused"`
			Failed  int64 `json:"failed"`
		}
		err = decodeLine(line, &counts)
		s.Refused, s.Failed = counts.Refused, counts.Failed
		return err
	})
	return s, err
}

// waiting measures the healthy upstream without and with requests that wait in
// the gateway for the one that hangs.
func (l *lab) waiting(p peer, set setup, healthy rate, well rig.Workload) ([]waitingPair, error) {
	set.timeout = 120 * time.Second // none ends while it is measured
	set.routes = slices.Clone(set.routes)
	set.routes[0].waiting = 2 * hungRequests
	healthy.duration *= waitingLonger
	var pairs []waitingPair
	for range waitingPairs {
		var pair waitingPair
		if err := l.control(well); err != nil { // or it does not start
			return nil, err
		}
		// A process each: requests of clients that were ended still wait in it.
		err := l.with(p, set, func(*rig.Process) (err error) {
			if pair.Undisturbed, err = l.openLoop(healthy); err != nil {
				return err
			}
			if err := l.control(rig.Workload{Hang: true}); err != nil {
				return err
			}
			hold, err := l.hang()
			if err != nil {
				return err
			}
			defer hold.Stop()
			pair.Beside, err = l.openLoop(healthy)
			return err
		})
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// hang sends the requests that hang, and waits until they are there.
func (l *lab) hang(flags ...string) (*rig.Process, error) {
	args := []string{"hold", "-addr", rig.Loopback(l.ports.http), "-host", hostName, "-path", "/hung", "-conns", strconv.Itoa(hungRequests)}
	hold, err := l.load.Start(append(args, flags...)...)
	if err != nil {
		return nil, err
	}
	if _, err := hold.Line(90 * time.Second); err != nil {
		hold.Stop()
		return nil, err
	}
	time.Sleep(2 * time.Second) // accepting 5,000 connections is not what is measured
	return hold, nil
}

// recovery probes the upstream that hangs, lets it be well a second later, and
// returns how long it took until its clients saw that, in seconds.
func (l *lab) recovery(well rig.Workload) (float64, error) {
	before := time.Second
	probe := rate{path: "/hung", rate: probeRate, duration: before + 5*time.Second, conns: 4000, lazy: true, slots: slotLength}
	loader, err := l.load.Start(probe.args(rig.Loopback(l.ports.http))...)
	if err != nil {
		return 0, err
	}
	defer loader.Stop()
	time.Sleep(before)
	if err := l.control(well); err != nil {
		return 0, err
	}
	out, err := loader.Line(probe.duration + time.Minute)
	if err != nil {
		return 0, err
	}
	var r rig.RateResult
	if err := decodeLine(out, &r); err != nil {
		return 0, err
	}
	if len(r.Slots) == 0 {
		return -1, nil
	}
	return recovered(r.Slots, int(before/slotLength), int(probe.duration/slotLength)), nil
}

// recovered finds the first slot, from one on, that begins a second in which
// 95 % of what ended was good and about as much ended as was sent, and returns
// its end as seconds after that first one's beginning; negative when there is
// none before the end.
func recovered(slots []rig.Slot, from, end int) float64 {
	width := int(time.Second / slotLength)
	for i := from; i+width <= min(end, len(slots)); i++ {
		var good, all uint64
		for _, s := range slots[i : i+width] {
			good += s.Good
			all += s.Good + s.Errors
		}
		first := slots[i]
		if float64(good) >= 0.95*float64(all) && float64(good) >= 0.8*probeRate && first.Good > first.Errors {
			return float64(i-from+1) * slotLength.Seconds()
		}
	}
	return -1
}
