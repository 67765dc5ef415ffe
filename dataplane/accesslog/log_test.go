package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// sink is an output whose Write is a function, and which keeps what it was given.
type sink struct {
	mu    sync.Mutex
	data  bytes.Buffer
	calls int
	write func(call int, p []byte) (int, error) // nil takes all
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	n, err := len(p), error(nil)
	if s.write != nil {
		n, err = s.write(s.calls, p)
	}
	s.data.Write(p[:min(n, len(p))])
	return n, err
}

func (s *sink) state() (text string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String(), s.calls
}

func start(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Loops == 0 {
		o.Loops = 1
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func wantCounts(t *testing.T, l *Log, written, dropped uint64) {
	t.Helper()
	if w, d := l.Counts(); w != written || d != dropped {
		t.Errorf("%d written, %d dropped; want %d and %d", w, d, written, dropped)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no output":           {Loops: 1},
		"no loops":            {Output: io.Discard},
		"tiny buffer":         {Output: io.Discard, Loops: 1, BufferBytes: 100},
		"negative buffer":     {Output: io.Discard, Loops: 1, BufferBytes: -1},
		"negative flush time": {Output: io.Discard, Loops: 1, FlushEvery: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestFlushesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		l := start(t, Options{Output: out, Loops: 2, FlushEvery: time.Second})
		defer closeLog(t, l)
		for round := 1; round <= 5; round++ {
			l.Loop(0).Write(time.Now(), full())
			l.Loop(1).Write(time.Now(), full())
			l.Loop(round%2).Write(time.Now(), full())
			time.Sleep(999 * time.Millisecond)
			synctest.Wait()
			if _, calls := out.state(); calls != 2*(round-1) {
				t.Fatalf("round %d: %d writes before the time, want %d", round, calls, 2*(round-1))
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			text, calls := out.state()
			if n := strings.Count(text, "\n"); n != 3*round || calls != 2*round {
				t.Fatalf("round %d: %d lines by %d writes, want %d by %d", round, n, calls, 3*round, 2*round)
			}
		}
		wantCounts(t, l, 15, 0)
	})
}

// A buffer that fills does not wait for the tick.
func TestFlushesAtTheHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		l := start(t, Options{Output: out, BufferBytes: minBuffer, FlushEvery: time.Hour})
		defer closeLog(t, l)
		w, line := l.Loop(0), len(appendLine(nil, []byte("2026-01-02T03:04:05.006Z"), full()))
		n := minBuffer/2/line + 1
		for range n - 1 {
			w.Write(time.Now(), full())
		}
		synctest.Wait()
		if _, calls := out.state(); calls != 0 {
			t.Fatal("written before the half")
		}
		w.Write(time.Now(), full())
		synctest.Wait()
		if text, _ := out.state(); strings.Count(text, "\n") != n {
			t.Errorf("%d lines, want %d", strings.Count(text, "\n"), n)
		}
	})
}

// A pipe that nobody reads: the loop goes on, memory stays, the loss is counted,
// and what is logged after the reader has come is whole.
func TestStuckOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pipe := io.Pipe()
		l := start(t, Options{Output: pipe, BufferBytes: minBuffer, FlushEvery: time.Millisecond})
		w, e := l.Loop(0), full()
		w.Write(time.Now(), e)
		time.Sleep(time.Second)
		synctest.Wait() // the goroutine is stuck in the pipe now
		const more = 100_000
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range more {
			w.Write(began, e)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("logging waited %v", d)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > minBuffer {
			t.Errorf("%d bytes were allocated", grown)
		}
		_, dropped := l.Counts()
		if kept := minBuffer / len(appendLine(nil, w.stamp, e)); dropped < more-uint64(kept) || dropped == more {
			t.Errorf("%d of %d dropped, want all but about %d", dropped, more, kept)
		}

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close of a stuck log: %v", err)
		}
		lines := make(chan uint64)
		go func() {
			n := uint64(0)
			for s := bufio.NewScanner(r); s.Scan(); n++ {
				if !json.Valid(s.Bytes()) {
					t.Errorf("not JSON: %s", s.Bytes())
				}
			}
			lines <- n
		}()
		closeLog(t, l)
		pipe.Close()
		written, dropped := l.Counts()
		if n := <-lines; n != written || written+dropped != more+1 {
			t.Errorf("%d lines of %d, %d dropped, %d logged", n, written, dropped, more+1)
		}
	})
}

func TestOutputErrors(t *testing.T) {
	noSpace := errors.New("no space left on device")
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		out := &sink{write: func(call int, p []byte) (int, error) {
			switch call {
			case 1: // the first line and a half
				return bytes.IndexByte(p, '\n') + 10, noSpace
			case 2, 3: // the end of the torn line is refused, too
				return 0, noSpace
			case 6: // says nothing, but takes less: exactly one line
				return bytes.IndexByte(p, '\n') + 1, nil
			}
			return len(p), nil
		}}
		l := start(t, Options{Output: out, FlushEvery: time.Second, Logger: zap.New(core)})
		w := l.Loop(0)
		log := func(n int) {
			for range n {
				w.Write(time.Now(), &Entry{Method: []byte("GET")})
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		log(3)
		wantCounts(t, l, 1, 2)
		log(2)
		wantCounts(t, l, 1, 4)
		log(1)
		wantCounts(t, l, 1, 5)
		log(2) // calls 4, the line's end, and 5
		wantCounts(t, l, 3, 5)
		log(3) // call 6
		wantCounts(t, l, 4, 7)
		log(1)
		wantCounts(t, l, 5, 7)
		closeLog(t, l)

		text, _ := out.state()
		whole := 0
		for line := range strings.Lines(text) {
			if json.Valid([]byte(line)) {
				whole++
			}
		}
		if n := strings.Count(text, "\n"); whole != 5 || n != 6 {
			t.Errorf("%d whole lines of %d, want 5 of 6:\n%s", whole, n, text)
		}
		var messages []string
		for _, m := range logs.All() {
			messages = append(messages, m.Message)
		}
		const lost, works = "access log: entries are lost", "access log: the output works again"
		if got, want := strings.Join(messages, "; "), strings.Join([]string{lost, works, lost, works}, "; "); got != want {
			t.Errorf("logged %q, want %q", got, want)
		}
	})
}

// Loops log at full speed while the output is now fast, now slow: every entry is
// either written whole or counted as dropped.
func TestNothingIsLostUncounted(t *testing.T) {
	const loops, entries = 4, 30_000
	var calls atomic.Int64
	out := &sink{write: func(_ int, p []byte) (int, error) {
		if calls.Add(1)%3 == 0 {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		}
		return len(p), nil
	}}
	l := start(t, Options{Output: out, Loops: loops, BufferBytes: minBuffer, FlushEvery: time.Microsecond})
	var wg sync.WaitGroup
	for i := range loops {
		wg.Go(func() {
			e := full()
			e.BytesIn = int64(i)
			for n := range entries {
				e.BytesOut = int64(n)
				l.Loop(i).Write(time.Unix(int64(n), 0), e)
				if n%1000 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	closeLog(t, l)
	text, _ := out.state()
	last, lines := [loops]int64{-1, -1, -1, -1}, uint64(0)
	for line := range strings.Lines(text) {
		var e struct {
			Loop int   `json:"bytes_in"`
			N    int64 `json:"bytes_out"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.N <= last[e.Loop] {
			t.Fatalf("loop %d: entry %d after %d", e.Loop, e.N, last[e.Loop])
		}
		last[e.Loop] = e.N
		lines++
	}
	written, dropped := l.Counts()
	if lines != written || written+dropped != loops*entries {
		t.Errorf("%d lines, %d written, %d dropped, %d logged", lines, written, dropped, loops*entries)
	}
	if written == 0 {
		t.Error("nothing was written")
	}
}

// The goroutine that comes while a loop is in the middle of an entry is called
// again when the entry is done, and not only at the next half.
func TestTakeAmidAnEntry(t *testing.T) {
	l := &Log{filled: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
	w := newWriter(l, minBuffer)
	w.Write(time.Unix(0, 0), full())
	<-l.filled
	busy := w.current.Swap(nil) // as Write does
	if w.take() != nil {
		t.Fatal("took a buffer that the loop works on")
	}
	w.current.Store(busy)
	w.Write(time.Unix(0, 0), full())
	select {
	case <-l.urgent:
	default:
		t.Fatal("the goroutine is not called again")
	}
	b := w.take()
	if b == nil || b.entries != 2 {
		t.Fatalf("took %v, want two entries", b)
	}
	w.release(b)
	if w.take() != nil {
		t.Fatal("took a buffer where nothing was written")
	}
	w.Write(time.Unix(0, 0), full())
	select {
	case <-l.urgent:
		t.Error("called as urgent by the first entry after an empty look")
	case <-l.filled:
	}
	if b = w.take(); b == nil || b.entries != 1 {
		t.Fatalf("took %v, want one entry", b)
	}
}

func TestNoAllocations(t *testing.T) {
	l := start(t, Options{Output: io.Discard})
	defer closeLog(t, l)
	w, e, now := l.Loop(0), full(), time.Unix(1_700_000_000, 0)
	e.UserAgent = []byte("gr\xfcn \"€\" \u009b")
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(100 * time.Millisecond)
		w.Write(now, e)
	}); n != 0 {
		t.Errorf("%v allocations per entry, want 0", n)
	}
}

func TestReopen(t *testing.T) {
	path := t.TempDir() + "/access.log"
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, Options{Output: f, FlushEvery: time.Microsecond})
	w := l.Loop(0)
	logOne := func() {
		before, _ := l.Counts()
		w.Write(time.Unix(0, 0), &Entry{})
		for n := before; n == before; n, _ = l.Counts() {
			runtime.Gosched()
		}
	}
	logOne()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	logOne()
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	logOne()
	closeLog(t, l)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{path + ".1": 2, path: 1} {
		data, err := os.ReadFile(name)
		if err != nil || bytes.Count(data, []byte{'\n'}) != want {
			t.Errorf("%s: %d lines, %v; want %d", name, bytes.Count(data, []byte{'\n'}), err, want)
		}
	}
	if _, err := OpenFile(t.TempDir()); err == nil {
		t.Error("a directory was opened as a log")
	}
}

// Reopening at any moment loses nothing: a write that meets the closed file goes
// to the new one.
func TestReopenWhileWriting(t *testing.T) {
	path := t.TempDir() + "/access.log"
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const writes = 5000
	done := make(chan error)
	go func() {
		for range writes {
			if n, err := f.Write([]byte("line\n")); n != 5 || err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) != 5*writes {
				t.Errorf("%d bytes, %v; want %d", len(data), err, 5*writes)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if _, err := f.Write(nil); !errors.Is(err, os.ErrClosed) {
				t.Errorf("write after Close: %v", err)
			}
			return
		default:
			if err := f.Reopen(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A path that cannot be opened any more leaves the old file in use.
func TestReopenFails(t *testing.T) {
	dir := t.TempDir() + "/logs"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(dir + "/access.log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := start(t, Options{Output: f})
	defer closeLog(t, l)
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("no error for a directory that is gone")
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Errorf("the old file is not in use any more: %v", err)
	}
}

func TestReopenOfAPlainOutput(t *testing.T) {
	l := start(t, Options{Output: io.Discard})
	defer closeLog(t, l)
	if err := l.Reopen(); err != nil {
		t.Error(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	l := start(b, Options{Output: io.Discard})
	defer closeLog(b, l)
	w, e, now := l.Loop(0), full(), time.Unix(1_700_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		w.Write(now, e)
	}
	b.StopTimer()
	written, dropped := l.Counts()
	b.ReportMetric(100*float64(dropped)/float64(written+dropped+1), "%dropped")
}

func BenchmarkLine(b *testing.B) {
	e, stamp := full(), []byte("2026-01-02T03:04:05.006Z")
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = appendLine(dst[:0], stamp, e)
	}
}
