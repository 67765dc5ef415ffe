package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/admin"
	"github.com/headgate/headgate/dataplane/handover"
	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

// dataPlaneFlags are the flags of every command that runs a data plane.
type dataPlaneFlags struct {
	admin       string
	adminSocket string
	handoverDir string
	exit        bool // when a new process serves
	metrics     string
	workers     int
	pin         bool
	placement   string
	accessLog   string
	drain       time.Duration
	trusted     []string
	limits      http1.Limits
	timeouts    dataplane.Timeouts
	pool        ir.Pool
	pressure    ir.Pressure
	maxRequests uint32

	maxConnections int64
	memoryLimit    string

	adaptive        string
	adaptiveTimeout ir.AdaptiveTimeout
	logLevel        string
	logFormat       string
}

func (f *dataPlaneFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.admin, "admin-address", "127.0.0.1:9901", "address of /healthz, /readyz, /metrics and /debug; empty for none")
	fs.StringVar(&f.adminSocket, "admin-socket", "", "Unix socket of the same pages, for headgate probe; empty for none")
	fs.StringVar(&f.handoverDir, "handover-dir", "", "directory in which this process takes the listening sockets over from the one before and hands them to the next, such as /run/headgate; empty for no hand-over")
	fs.StringVar(&f.metrics, "metrics-address", "", "address of /metrics alone, for a network that must not reach the rest, such as :9902; empty for none")
	fs.IntVar(&f.workers, "workers", 0, "event loops, where the GatewayClass's parameters don't say it; 0 means one per usable CPU")
	fs.BoolVar(&f.pin, "pin", false, "pin each loop to a CPU, where the GatewayClass's parameters don't say it")
	fs.StringVar(&f.placement, "placement", "round-robin", "how connections come to loops: round-robin, least-loaded or reuse-port")
	fs.StringVar(&f.accessLog, "access-log", "-", "JSON access log: a file, - for standard output, or off")
	fs.DurationVar(&f.drain, "drain-period", 30*time.Second, "how long connections may finish after SIGTERM")
	fs.DurationVar(&f.drain, "drain-timeout", 30*time.Second, "the old name of --drain-period")
	_ = fs.MarkDeprecated("drain-timeout", "use --drain-period") // fails on an unknown flag only
	fs.StringSliceVar(&f.trusted, "trusted-cidr", nil, "peers whose X-Forwarded-* headers are kept; repeatable")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&f.logFormat, "log-format", "console", "console or json")

	fs.IntVar(&f.limits.RequestLine, "max-request-line", 8<<10, "bytes of a request line; more is answered 414")
	fs.IntVar(&f.limits.HeaderBytes, "max-header-bytes", 64<<10, "bytes of a head; more is answered 431")
	fs.IntVar(&f.limits.HeaderCount, "max-headers", 100, "fields of a head; more is answered 431")
	fs.Int64Var(&f.maxConnections, "max-connections", 0, "clients that may be connected; 0 means three quarters of the descriptors that the process may open, negative no limit")
	fs.StringVar(&f.memoryLimit, "memory-limit", "", "memory close to which no connection is accepted, such as 512MiB; empty means GOMEMLIMIT, if it is set, and none no limit")
	fs.Uint32Var(&f.maxRequests, "max-requests", 0, "requests on one client connection; 0 means no limit")

	fs.DurationVar(&f.timeouts.Header, "header-timeout", 10*time.Second, "from a request's first byte to the end of its head")
	fs.DurationVar(&f.timeouts.Idle, "idle-timeout", 75*time.Second, "how long a client connection may be without a request")
	fs.DurationVar(&f.timeouts.Body, "body-timeout", 60*time.Second, "how long a request's body may make no progress")

	fs.DurationVar(&f.pool.ConnectTimeout, "connect-timeout", 5*time.Second, "for a connection to an upstream")
	fs.DurationVar(&f.pool.ResponseTimeout, "response-timeout", 60*time.Second, "from the written request to the head of the response; negative for none")
	fs.IntVar(&f.pool.Size, "pool-size", 1024, "requests that are under way at one cluster at once")
	fs.Float64Var(&f.pressure.Theta, "pressure-theta", 0.85, "utilisation of a cluster's pool from which on its last places are paced; 1 never paces")
	fs.IntVar(&f.pressure.Held, "pool-waiting", 0, "requests that are held for want of a place in a cluster's pool; 0 means as many as the pool's size, but at least 100")
	fs.Int64Var(&f.pressure.HeldBytes, "held-bytes", 16<<20, "memory that the held requests of a cluster may take, in bytes")
	fs.DurationVar(&f.pressure.HoldTime, "pool-wait-timeout", 5*time.Second, "how long a request is held for want of a place in a pool before it is answered 503")
	fs.StringVar(&f.adaptive, "adaptive-timeout", "enforce", "deadline by what a cluster usually takes to answer, where no BackendPolicy says another mode: enforce, observe or off")
	fs.DurationVar(&f.adaptiveTimeout.Min, "adaptive-min", 5*time.Second, "the least adaptive deadline")
	fs.DurationVar(&f.adaptiveTimeout.Max, "adaptive-max", 0, "the greatest adaptive deadline; 0 means the response timeout")
	fs.DurationVar(&f.pool.IdleTimeout, "upstream-idle-timeout", 60*time.Second, "how long an unused upstream connection is kept")
}

// process is a running data plane with its log, its metrics, its admin server and
// its part in the hand-over.
type process struct {
	log      *zap.Logger
	server   *dataplane.Server
	access   *accesslog.Log
	admin    *adminServer       // nil without one
	scrape   *metricsServer     // nil without one
	handover *handover.Handover // nil without one
	exit     bool
	drain    time.Duration
	ready    func() error
	serves   atomic.Bool // the hand-over, if any, is done
	draining atomic.Bool
}

// start starts a data plane that serves nothing yet. first is asked what the
// configuration says of the process, as far as it is known. ready says why the
// process is not ready, nil when it is. control is given the data plane, before the
// admin server asks ready. When ctx ends, waiting for another process ends.
func (f *dataPlaneFlags) start(ctx context.Context, first func(context.Context, *zap.Logger) ir.Process, ready func() error,
	control func(*dataplane.Server, *zap.Logger) error,
) (*process, error) {
	log, err := newLogger(f.logLevel, f.logFormat)
	if err != nil {
		return nil, err
	}
	placement, err := parsePlacement(f.placement)
	if err != nil {
		return nil, err
	}
	trusted, err := parsePrefixes("--trusted-cidr", f.trusted)
	if err != nil {
		return nil, err
	}
	if f.adaptiveTimeout.Mode, err = parseAdaptiveMode(f.adaptive); err != nil {
		return nil, err
	}
	memory, err := parseMemoryLimit(f.memoryLimit)
	if err != nil {
		return nil, err
	}
	switch {
	case f.workers < 0:
		return nil, fmt.Errorf("--workers %d: use a positive number, or 0 for one per CPU", f.workers)
	case f.drain < 0:
		return nil, fmt.Errorf("--drain-period %v: use a positive time, or 0 to end at once", f.drain)
	case f.workers == 0:
		f.workers = runtime.NumCPU()
	}
	flags := ir.Process{Workers: f.workers, Pinning: ir.PinOff}
	if f.pin {
		flags.Pinning = ir.PinPerCPU
	}
	wanted := first(ctx, log)
	f.workers = cmp.Or(wanted.Workers, f.workers)
	f.pin = cmp.Or(wanted.Pinning, flags.Pinning) == ir.PinPerCPU
	// The loops block in the poller without telling the runtime: leave it a
	// processor for everything else (collection, handshakes, the controller).
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), f.workers+1))

	p := &process{log: log, drain: f.drain, ready: ready, exit: f.exit}
	if p.access, err = openAccessLog(f.accessLog, f.workers); err != nil {
		return nil, err
	}
	o := metrics.Options{Loops: f.workers, Version: version, Reactor: p.loopStats, Accepts: p.accepts, AccessLog: p.accessCounts, Guard: p.guardStats, Stages: p.stageStats}
	if f.handoverDir != "" {
		o.Handover = p.handoverStats
	}
	m, err := metrics.New(o)
	if err != nil {
		return nil, err
	}
	before, err := p.takeOver(ctx, f.handoverDir)
	if err != nil {
		return nil, err
	}
	p.server, err = dataplane.New(dataplane.Options{
		Reactor: reactor.Options{Workers: f.workers, Pin: f.pin, Placement: placement, Share: f.handoverDir != ""},
		Process: flags,
		Limits:  f.limits, Pool: f.pool, Adaptive: f.adaptiveTimeout, Pressure: f.pressure, Timeouts: f.timeouts, MaxRequests: f.maxRequests,
		MaxConnections: f.maxConnections, MemoryLimit: memory,
		TrustedProxies: trusted, Predecessor: before, Metrics: m, AccessLog: p.access, Logger: log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	if err := control(p.server, log); err != nil {
		return nil, err
	}
	p.reopenOnHangup()
	if f.metrics != "" {
		if p.scrape, err = startMetrics(f.metrics, m.Registry(), log); err != nil {
			return nil, err
		}
	}
	if f.admin == "" && f.adminSocket == "" {
		return p, nil
	}
	pages, err := admin.New(admin.Options{
		DataPlane: p, Metrics: m.Registry(), Clusters: p.clusters, Stages: p.stages, Version: version, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	p.admin = &adminServer{server: pages, log: log}
	return p, p.admin.listen(f.admin, f.adminSocket, p.handover)
}

// reopenOnHangup opens the access log's file anew on SIGHUP, for log rotation.
// Without it SIGHUP would end the process.
func (p *process) reopenOnHangup() {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for range hangup {
			if p.access == nil {
				continue
			}
			if err := p.access.Reopen(); err != nil {
				p.log.Error("the access log could not be reopened", zap.Error(err))
			}
		}
	}()
}

// stop drains the data plane and ends everything.
func (p *process) stop() error {
	p.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), p.drain)
	defer cancel()
	p.log.Info("draining", zap.Int64("connections", p.server.Connections()), zap.Duration("period", p.drain))
	var scrapes sync.WaitGroup
	if p.scrape != nil {
		// At once: the next process wants the address. Clients of the metrics that
		// are slow do not put the drain off.
		scrapes.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := p.scrape.close(ctx); err != nil {
				p.log.Warn("closing the metrics server", zap.Error(err))
			}
		})
	}
	p.server.Drain(p.leave(ctx))
	err := p.server.Shutdown(ctx)
	if err != nil {
		p.log.Warn("connections were cut at the end of the drain", zap.Error(err))
	}
	rest, cancelRest := context.WithTimeout(context.Background(), time.Second)
	defer cancelRest()
	if p.access != nil {
		if cerr := p.access.Close(rest); cerr != nil {
			p.log.Warn("access log lines were lost", zap.Error(cerr))
		}
	}
	if p.admin != nil {
		if cerr := p.admin.close(rest); cerr != nil {
			p.log.Warn("closing the admin server", zap.Error(cerr))
		}
	}
	if p.handover != nil {
		p.handover.Close()
	}
	scrapes.Wait()
	p.log.Info("stopped")
	return nil
}

// Ready implements [admin.DataPlane].
func (p *process) Ready() error {
	if p.draining.Load() {
		return errors.New("draining")
	}
	if err := p.ready(); err != nil {
		return err
	}
	if !p.serves.Load() {
		return errors.New("the sockets are being handed over")
	}
	return nil
}

// Snapshot implements [admin.DataPlane].
func (p *process) Snapshot() *ir.Snapshot {
	snap, _ := p.server.Snapshot()
	return snap
}

// Loops implements [admin.DataPlane].
func (p *process) Loops() []admin.Loop {
	stats := p.server.Loops()
	out := make([]admin.Loop, len(stats))
	for i, s := range stats {
		out[i] = admin.Loop{Index: i, Conns: s.Conns, Busy: time.Duration(s.BusyNanos), Events: s.Events, Wakeups: s.Wakeups, Panics: s.Panics}
	}
	return out
}

func (p *process) loopStats(i int) metrics.ReactorStats {
	if p.server == nil {
		return metrics.ReactorStats{}
	}
	s := p.server.Loops()[i]
	return metrics.ReactorStats{Conns: s.Conns, Busy: time.Duration(s.BusyNanos), Events: s.Events, Wakeups: s.Wakeups, Panics: s.Panics}
}

func (p *process) accepts() (failed, shed uint64) {
	if p.server == nil {
		return 0, 0
	}
	return p.server.Accepts()
}

func (p *process) accessCounts() (written, dropped uint64) {
	if p.access == nil {
		return 0, 0
	}
	return p.access.Counts()
}

func openAccessLog(target string, loops int) (*accesslog.Log, error) {
	var out io.Writer
	switch target {
	case "off", "":
		return nil, nil
	case "-":
		out = os.Stdout
	default:
		file, err := accesslog.OpenFile(target)
		if err != nil {
			return nil, fmt.Errorf("--access-log: %w", err)
		}
		out = file
	}
	return accesslog.New(accesslog.Options{Output: out, Loops: loops})
}

func parsePlacement(name string) (reactor.Placement, error) {
	for _, p := range []reactor.Placement{reactor.RoundRobin, reactor.LeastLoaded, reactor.ReusePort} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("--placement %q: use %s, %s or %s", name, reactor.RoundRobin, reactor.LeastLoaded, reactor.ReusePort)
}

func parseMemoryLimit(s string) (int64, error) {
	switch s {
	case "":
		return 0, nil
	case "none":
		return -1, nil
	}
	n, err := parseBytes(s)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("--memory-limit %q: use a size such as 512MiB, none, or leave it out", s)
	}
	return n, nil
}

func parseAdaptiveMode(name string) (ir.AdaptiveMode, error) {
	for _, m := range []ir.AdaptiveMode{ir.AdaptiveEnforce, ir.AdaptiveObserve, ir.AdaptiveOff} {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("--adaptive-timeout %q: use enforce, observe or off", name)
}

func parsePrefixes(flag string, list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("%s %q: use an address or a prefix such as 10.0.0.0/8", flag, s)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
