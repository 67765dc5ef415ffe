package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/holdoff"
	"github.com/headgate/headgate/dataplane/ir"
)

// Source gives the objects. Input is called by the loop only, one call at a time.
type Source interface {
	// Watch signals when Input may have changed, until ctx ends.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Input returns a consistent set of objects that nobody changes, and what
	// kept others out of it.
	Input() (compile.Input, []compile.Problem)
	// Locate says in which file and line a problem is, if the source has files.
	Locate(*compile.Problem)
}

// DataPlane takes snapshots. A snapshot that it serves already is taken again
// when a socket of it failed: Apply then tries what is missing.
type DataPlane interface {
	Apply(*ir.Snapshot) ir.ApplyResult
}

// Sink is told what became of the objects.
type Sink interface {
	Write(context.Context, *compile.Report) error
}

// Options are what a [Loop] connects.
type Options struct {
	Source    Source
	DataPlane DataPlane
	// Sink may be nil: then nobody is told but the log.
	Sink Sink
	// Ports tells who has a port that is taken, and whether connections come to
	// those that are not. It may be nil: then only the system's error is told.
	Ports Ports
	// Observe may be nil. It hears of each turn, in the loop: it must not wait.
	Observe func(*State)
	// Logger may be nil.
	Logger *zap.Logger
	// Holdoff bounds how soon a change is taken.
	Holdoff holdoff.Options
	// Retry is the first pause before a socket that failed is tried again, and
	// before a status that could not be written is; it doubles up to RetryMost.
	// Defaults 1 s and 30 s.
	Retry, RetryMost time.Duration
}

// State is the outcome of one turn of the loop. It is immutable.
type State struct {
	// Snapshot is what the data plane was given last, and Hash its name.
	Snapshot *ir.Snapshot
	Hash     string
	// Result is its answer.
	Result ir.ApplyResult
	// Report holds what became of the objects.
	Report *compile.Report
	// Problems are those of the source and of the report, with their places,
	// sorted.
	Problems []compile.Problem
}

// Loop carries objects from a source to a data plane. Run is for one goroutine;
// the other methods are for all.
type Loop struct {
	o        Options
	log      *zap.Logger
	compiler compile.Compiler
	hasher   ir.Hasher
	checker  ir.Validator
	state    atomic.Pointer[State]
	ready    chan struct{}
	told     map[compile.Problem]bool // problems that are in the log
	unsaid   bool                     // the sink has not taken the last report
	sockets  sockets
}

// New returns a loop that stands still until [Loop.Run].
func New(o Options) (*Loop, error) {
	if o.Source == nil || o.DataPlane == nil {
		return nil, errors.New("the loop needs a source and a data plane")
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.RetryMost == 0 {
		o.RetryMost = 30 * time.Second
	}
	return &Loop{o: o, log: o.Logger, ready: make(chan struct{}), told: make(map[compile.Problem]bool), sockets: newSockets(o.Ports)}, nil
}

// Ready is closed once the data plane has taken a first snapshot.
func (l *Loop) Ready() <-chan struct{} { return l.ready }

// State returns the outcome of the last turn, or nil before the first.
func (l *Loop) State() *State { return l.state.Load() }

// Run turns the loop until ctx ends. Nothing that a source or a sink does ends it.
func (l *Loop) Run(ctx context.Context) error {
	// Watch first: what changes after the first Input is then seen.
	changed, err := l.o.Source.Watch(ctx)
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	events := make(chan holdoff.Event)
	turns := holdoff.Run(ctx, events, l.o.Holdoff)
	retry, freed, reach := stopped(), stopped(), stopped()
	pause := l.o.Retry
	turn := func() {
		l.Turn(ctx)
		arm(freed, freedEvery, len(l.sockets.held) > 0)
		arm(reach, reachAgain, l.sockets.diverted())
		if !l.behind() {
			pause = l.o.Retry
			retry.Stop()
			return
		}
		retry.Reset(pause)
		pause = min(2*pause, l.o.RetryMost)
	}
	turn()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changed:
			if !ok {
				changed = nil // ctx ends
				continue
			}
			select {
			case events <- holdoff.Now:
			case <-ctx.Done():
			}
		case _, ok := <-turns:
			if ok {
				turn()
			}
		case <-retry.C:
			turn()
		case <-freed.C:
			if l.sockets.freed(l.State().Snapshot) {
				turn()
			} else {
				freed.Reset(freedEvery)
			}
		case <-reach.C:
			l.sockets.try(ctx, (*trial).diverted)
			reach.Reset(reachAgain)
		case a := <-l.sockets.answers:
			if l.sockets.take(a) || l.sockets.unknown() {
				turn()
			}
		}
	}
}

// stopped returns a timer that stands still.
func stopped() *time.Timer {
	t := time.NewTimer(0)
	t.Stop()
	return t
}

// arm has the timer fire after d, or not at all.
func arm(t *time.Timer, d time.Duration, on bool) {
	if on {
		t.Reset(d)
	} else {
		t.Stop()
	}
}

// behind tells whether something of the last turn must be tried again.
func (l *Loop) behind() bool { return l.unsaid || !l.State().Result.OK() }

// Turn takes the input once, and brings the data plane and the sink up to date
// with it. Run calls it; others may when Run does not run.
func (l *Loop) Turn(ctx context.Context) {
	last := l.state.Load()
	in, problems := l.o.Source.Input()
	if last != nil && in.Assigned == nil {
		in.Assigned = last.Report.Assigned
	}
	snap, report := l.compiler.Compile(in)
	next := &State{Snapshot: snap}
	same := last != nil && snap == last.Snapshot
	if same {
		next.Hash = last.Hash
	} else {
		next.Hash = l.hasher.Hash(snap)
		same = last != nil && next.Hash == last.Hash
	}
	if same && last.Result.OK() {
		next.Result = last.Result
	} else {
		next.Result = l.apply(snap)
		if !same || next.Result.OK() {
			l.log.Info("configuration applied", zap.String("snapshot", next.Hash), zap.Bool("complete", next.Result.OK()))
		}
	}
	next.Report = report.Applied(l.sockets.explain(ctx, snap, next.Result, in.Options.Addresses.Node, report))
	next.Problems = append(slices.Clone(problems), next.Report.Problems...)
	for i := range next.Problems {
		l.o.Source.Locate(&next.Problems[i])
	}
	compile.SortProblems(next.Problems)
	l.state.Store(next)
	l.open(next)
	if l.o.Observe != nil {
		l.o.Observe(next)
	}
	l.tell(next.Problems)
	l.say(ctx, next.Report)
}

// open closes ready at the first snapshot that was taken.
func (l *Loop) open(s *State) {
	if s.Result.Err != nil {
		return
	}
	select {
	case <-l.ready:
	default:
		close(l.ready)
	}
}

// apply hands a snapshot over that keeps all promises, and no other.
func (l *Loop) apply(snap *ir.Snapshot) ir.ApplyResult {
	if err := l.checker.Validate(snap); err != nil {
		return ir.ApplyResult{Err: fmt.Errorf("the compiler made an invalid snapshot: %w", err)}
	}
	return l.o.DataPlane.Apply(snap)
}

// tell logs the problems that are new, and when there are none any more.
func (l *Loop) tell(problems []compile.Problem) {
	now := make(map[compile.Problem]bool, len(problems))
	for _, p := range problems {
		now[p] = true
		if l.told[p] {
			continue
		}
		level := zap.ErrorLevel
		if p.Severity == compile.Warning {
			level = zap.WarnLevel
		}
		var fields []zap.Field
		for _, f := range []struct{ name, value string }{{"object", p.Object()}, {"field", p.Field}, {"reason", p.Reason}, {"file", p.File}} {
			if f.value != "" {
				fields = append(fields, zap.String(f.name, f.value))
			}
		}
		if p.Line > 0 {
			fields = append(fields, zap.Int("line", p.Line))
		}
		line := p
		line.Severity = compile.Error // the level says it
		l.log.Log(level, line.String(), fields...)
	}
	if len(l.told) > 0 && len(now) == 0 {
		l.log.Info("the configuration has no problem any more")
	}
	l.told = now
}

// say gives the report to the sink.
func (l *Loop) say(ctx context.Context, r *compile.Report) {
	l.unsaid = false
	if l.o.Sink == nil {
		return
	}
	if err := l.o.Sink.Write(ctx, r); err != nil {
		l.unsaid = true
		l.log.Warn("the status could not be written", zap.Error(err))
	}
}
