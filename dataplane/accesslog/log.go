package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options configure a Log. Zero values mean the defaults; Output and Loops are
// required.
type Options struct {
	// Output gets whole lines, many at a time, from one goroutine.
	Output io.Writer
	// Loops is the number of event loops, 1 or more.
	Loops int
	// BufferBytes is the size of one of a loop's two buffers, at least 64 KiB;
	// default 1 MiB, some 50 ms of a saturated loop.
	BufferBytes int
	// FlushEvery is the longest time that an entry waits in a buffer while the
	// output takes what it is given; default 200 ms.
	FlushEvery time.Duration
	// Logger is told when the output begins and ceases to fail; may be nil.
	Logger *zap.Logger
}

const (
	minBuffer         = 64 << 10 // the longest line fits: see lineBound
	defaultBuffer     = 1 << 20
	defaultFlushEvery = 200 * time.Millisecond
)

// Log is an access log.
type Log struct {
	opts    Options
	writers []*Writer
	written atomic.Uint64
	lost    atomic.Uint64 // handed over, but not taken by the output

	filled chan struct{} // a loop's buffer is not empty any more
	urgent chan struct{} // a loop's buffer should be emptied soon
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once

	// The goroutine's.
	failing bool
	torn    bool // the output has the beginning of a line
}

// New starts a log. Close ends it.
func New(o Options) (*Log, error) {
	switch {
	case o.Output == nil:
		return nil, errors.New("access log: no output")
	case o.Loops < 1:
		return nil, errors.New("access log: at least one loop is needed")
	case o.BufferBytes != 0 && o.BufferBytes < minBuffer:
		return nil, fmt.Errorf("access log: a buffer of %d bytes is too small, want %d or more", o.BufferBytes, minBuffer)
	case o.FlushEvery < 0:
		return nil, fmt.Errorf("access log: negative flush time %v", o.FlushEvery)
	}
	if o.BufferBytes == 0 {
		o.BufferBytes = defaultBuffer
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = defaultFlushEvery
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	l := &Log{
		opts:    o,
		writers: make([]*Writer, o.Loops),
		filled:  make(chan struct{}, 1),
		urgent:  make(chan struct{}, 1),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	for i := range l.writers {
		l.writers[i] = newWriter(l, o.BufferBytes)
	}
	go l.run()
	return l, nil
}

// Loop returns the part of loop i, from 0.
func (l *Log) Loop(i int) *Writer { return l.writers[i] }

// Counts returns how many entries the output took, and how many were dropped.
// Any goroutine may ask.
func (l *Log) Counts() (written, dropped uint64) {
	dropped = l.lost.Load()
	for _, w := range l.writers {
		dropped += w.dropped.Load()
	}
	return l.written.Load(), dropped
}

// Reopen makes the output open its file anew, after somebody renamed it. It does
// nothing for an output that has no Reopen of its own.
func (l *Log) Reopen() error {
	if f, ok := l.opts.Output.(interface{ Reopen() error }); ok {
		return f.Reopen()
	}
	return nil
}

// Close writes what the loops have logged and ends the log. The loops must be
// through with it; what they log afterwards is lost. When ctx ends first, an
// output that is stuck still holds the log's goroutine: closing the output frees
// it. Close does not close the output.
func (l *Log) Close(ctx context.Context) error {
	l.once.Do(func() { close(l.quit) })
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("access log: output is stuck: %w", ctx.Err())
	}
}

// run moves the loops' buffers to the output. It sleeps without a timer while
// nothing is logged.
func (l *Log) run() {
	defer close(l.done)
	timer := time.NewTimer(l.opts.FlushEvery)
	defer timer.Stop()
	for {
		timer.Stop()
		select {
		case <-l.filled:
			timer.Reset(l.opts.FlushEvery) // more is likely to come
			select {
			case <-timer.C:
			case <-l.urgent:
			case <-l.quit:
			}
		case <-l.urgent:
		case <-l.quit:
			l.collect()
			return
		}
		l.collect()
	}
}

// collect writes what the loops have.
func (l *Log) collect() {
	for _, w := range l.writers {
		b := w.take()
		if b == nil {
			continue
		}
		if len(b.lines) > 0 {
			l.write(b)
		}
		w.release(b)
	}
}

// write gives a buffer to the output and counts what became of its entries.
func (l *Log) write(b *buffer) {
	p := b.lines
	if l.torn {
		// Ends the line that an earlier error cut short, so that it does not
		// spoil the next one.
		if _, err := l.opts.Output.Write([]byte{'\n'}); err != nil {
			l.failed(err)
			l.lost.Add(b.entries)
			return
		}
		l.torn = false
	}
	n, err := l.opts.Output.Write(p)
	n = min(max(n, 0), len(p))
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err == nil {
		l.written.Add(b.entries)
		if l.failing {
			l.failing = false
			l.opts.Logger.Info("access log: the output works again")
		}
		return
	}
	whole := uint64(bytes.Count(p[:n], []byte{'\n'}))
	l.torn = n > 0 && p[n-1] != '\n'
	l.written.Add(whole)
	l.lost.Add(b.entries - whole)
	l.failed(err)
}

// failed logs the first error of a row.
func (l *Log) failed(err error) {
	if l.failing {
		return
	}
	l.failing = true
	l.opts.Logger.Error("access log: entries are lost", zap.Error(err))
}
