//go:build linux

package reactor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

func TestPostKeepsOrder(t *testing.T) {
	l := start(t, Options{}).Loops()[0]
	const senders, each = 4, 2000
	last := make([]int, senders)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				l.Post(func() {
					if last[s] != i {
						t.Errorf("sender %d: %d runs after %d", s, i, last[s]-1)
					}
					last[s] = i + 1
				})
			}
		})
	}
	wg.Wait()
	on(t, l, func() {
		for s, n := range last {
			if n != each {
				t.Errorf("sender %d: %d of %d ran", s, n, each)
			}
		}
	})
	if n := l.Stats().Wakeups; n > senders*each {
		t.Errorf("%d wake-ups for %d posts", n, senders*each)
	}
}

// TestPostDoesNotStarve: a function that posts itself for ever leaves room for
// connections and timers.
func TestPostDoesNotStarve(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	stop := false
	var again func()
	again = func() {
		if !stop {
			l.Post(again)
		}
	}
	l.Post(again)
	nc := dialTCP(t, listenOn(t, r, echo).Addr())
	for range 10 {
		mustWrite(t, nc, []byte("x"))
		mustRead(t, nc, 1)
	}
	var timer Timer
	fired := make(chan struct{})
	timer.Fire = func(time.Time) { close(fired) }
	l.Post(func() { l.Schedule(&timer, time.Millisecond) })
	receive(t, fired, "timer")
	l.Post(func() { stop = true })
}

// TestPanicsAreContained: whatever panics, its connection ends with a reset and
// everything else goes on.
func TestPanicsAreContained(t *testing.T) {
	boom := func() { panic("boom") }
	tests := []struct {
		name string
		conn bool // a connection is to be aborted
		h    func(closed func(*Conn, error)) func(*Loop, *Conn) Handler
		do   func(l *Loop)
	}{
		{"accept", false, func(func(*Conn, error)) func(*Loop, *Conn) Handler {
			return func(*Loop, *Conn) Handler { boom(); return nil }
		}, nil},
		{"read", true, func(closed func(*Conn, error)) func(*Loop, *Conn) Handler {
			return func(*Loop, *Conn) Handler {
				return &probe{read: func(c *Conn, p []byte) { c.Write([]byte("lost")); boom() }, closed: closed}
			}
		}, nil},
		{"end of file", true, func(closed func(*Conn, error)) func(*Loop, *Conn) Handler {
			return func(*Loop, *Conn) Handler {
				return &probe{read: func(c *Conn, p []byte) {
					if len(p) == 0 {
						boom()
					}
				}, closed: closed}
			}
		}, nil},
		{"drained", true, func(closed func(*Conn, error)) func(*Loop, *Conn) Handler {
			return func(_ *Loop, c *Conn) Handler {
				for range 300 {
					c.Write(make([]byte, 1000))
				}
				c.flags |= flagAbove // as if the kernel had taken it slowly
				return &probe{drained: func(*Conn) { boom() }, closed: closed}
			}
		}, nil},
		{"close", true, func(closed func(*Conn, error)) func(*Loop, *Conn) Handler {
			return func(_ *Loop, c *Conn) Handler {
				return &probe{read: func(c *Conn, _ []byte) { c.Close() }, closed: func(c *Conn, err error) {
					closed(c, ErrPanic)
					boom()
				}}
			}
		}, nil},
		{"timer", false, nil, func(l *Loop) { l.Schedule(&Timer{Fire: func(time.Time) { boom() }}, 0) }},
		{"timer without function", false, nil, func(l *Loop) { l.Schedule(new(Timer), 0) }},
		{"posted", false, nil, func(*Loop) { boom() }},
		{"error value", false, nil, func(*Loop) { panic(errors.New("boom")) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log syncBuffer
			logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&log), zap.InfoLevel))
			r := start(t, Options{Logger: logger})
			l := r.Loops()[0]
			bystander := dialTCP(t, listenOn(t, r, echo).Addr())
			mustWrite(t, bystander, []byte("a"))
			mustRead(t, bystander, 1)

			closed := make(chan error, 10)
			if tt.h != nil {
				ln := listenOn(t, r, tt.h(func(_ *Conn, err error) { closed <- err }))
				// The reset may come while the client still connects.
				nc, err := net.DialTimeout("tcp", ln.Addr().String(), patience)
				if err == nil {
					defer nc.Close()
					_, err = nc.Write([]byte("x"))
					if tt.name == "end of file" {
						_ = nc.(*net.TCPConn).CloseWrite()
					}
					if err == nil && tt.name != "drained" && tt.name != "close" {
						_, err = nc.Read(make([]byte, 1))
					}
				}
				if tt.name != "drained" && tt.name != "close" && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
					t.Errorf("client got %v, want a reset", err)
				}
			} else {
				l.Post(func() { tt.do(l) })
			}
			if tt.conn {
				if err := receive(t, closed, "OnClose"); !errors.Is(err, ErrPanic) {
					t.Errorf("OnClose got %v", err)
				}
			}
			eventually(t, "the panic is counted", func() bool { return l.Stats().Panics == 1 })
			mustWrite(t, bystander, []byte("b"))
			mustRead(t, bystander, 1)
			if n := l.Stats().Conns; n != 1 {
				t.Errorf("%d connections, want the bystander's", n)
			}
			if len(closed) > 0 {
				t.Errorf("OnClose came again: %v", <-closed)
			}
			if s := log.String(); !strings.Contains(s, "panicked") || tt.name != "timer without function" && !strings.Contains(s, "boom") || !strings.Contains(s, "loop_test.go") && tt.name != "timer without function" {
				t.Errorf("log lacks the panic or its stack: %s", s)
			}
		})
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestIdleMakesNoSystemCalls: with connections open but silent, no loop's thread
// leaves its wait.
func TestIdleMakesNoSystemCalls(t *testing.T) {
	for _, placement := range []Placement{RoundRobin, ReusePort} {
		t.Run(placement.String(), func(t *testing.T) {
			r := start(t, Options{Workers: 2, Placement: placement})
			ln := listenOn(t, r, echo)
			var conns []*Conn
			got := make(chan *Conn, 20)
			ln2 := listenOn(t, r, func(l *Loop, c *Conn) Handler { got <- c; return echo(l, c) })
			for range 10 {
				nc := dialTCP(t, ln.Addr())
				mustWrite(t, nc, []byte("x"))
				mustRead(t, nc, 1)
				dialTCP(t, ln2.Addr())
				conns = append(conns, receive(t, got, "connection"))
			}
			for i, c := range conns { // also in the states that are not plain reading
				on(t, c.Loop(), func() {
					switch i % 3 {
					case 0:
						c.PauseRead()
					case 1:
						c.CloseWrite()
					}
				})
			}
			var timer Timer
			timer.Fire = func(time.Time) {}
			l := r.Loops()[0]
			on(t, l, func() { l.Schedule(&timer, time.Millisecond) })
			eventually(t, "the timer fires", func() bool { return l.Stats().Alarms > 0 })
			loops := append([]*Loop{r.acceptor}, r.Loops()...)
			all := func() (out []string) {
				for _, l := range loops {
					out = append(out, activity(t, l))
				}
				return out
			}
			eventually(t, "what is under way comes to its end", func() bool {
				before := all()
				time.Sleep(30 * time.Millisecond)
				return slices.Equal(before, all())
			})
			before := all()
			time.Sleep(300 * time.Millisecond)
			for i, after := range all() {
				if after != before[i] {
					t.Errorf("loop %d: %s, then %s", loops[i].Index(), before[i], after)
				}
			}
		})
	}
}

// activity describes what a loop has done: its events, and how often its thread
// was switched.
func activity(t *testing.T, l *Loop) string {
	t.Helper()
	if l.tid == 0 { // the acceptor
		return fmt.Sprintf("events %d", l.Stats().Events)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", l.tid))
	if err != nil {
		t.Fatal(err)
	}
	_, switches, ok := strings.Cut(string(status), "voluntary_ctxt_switches:")
	if !ok {
		t.Fatal("no context switches in the status")
	}
	return fmt.Sprintf("events %d switches %s", l.Stats().Events, strings.Join(strings.Fields(switches), " "))
}

// TestLoopsAreThreads: callbacks of one loop run on one thread, those of another
// on another, and pinning binds each to its CPU.
func TestLoopsAreThreads(t *testing.T) {
	cpus, err := affinity()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Workers: 3, Pin: true})
	seen := map[int]int{}
	for i, l := range r.Loops() {
		if l.Index() != i {
			t.Errorf("loop %d has index %d", i, l.Index())
		}
		for range 20 {
			on(t, l, func() {
				if tid := unix.Gettid(); seen[tid] == 0 {
					seen[tid] = i + 1
				} else if seen[tid] != i+1 {
					t.Errorf("thread %d runs loops %d and %d", tid, seen[tid]-1, i)
				}
				var set unix.CPUSet
				if err := unix.SchedGetaffinity(0, &set); err != nil {
					t.Error(err)
				}
				if want := cpus[i%len(cpus)]; set.Count() != 1 || !set.IsSet(want) {
					t.Errorf("loop %d is not bound to cpu %d alone", i, want)
				}
			})
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d threads for 3 loops", len(seen))
	}
}

func TestBusyTimeIsTheThreads(t *testing.T) {
	r, err := New(Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := r.Loops()[0]
	before := l.Stats().BusyNanos
	work := func() {
		for begin := threadNanos(unix.Gettid()); threadNanos(unix.Gettid())-begin < int64(20*time.Millisecond); {
		}
	}
	on(t, l, work)
	after := l.Stats().BusyNanos
	if d := time.Duration(after - before); d < 20*time.Millisecond || d > 10*time.Second {
		t.Errorf("busy for %v, want at least 20ms", d)
	}
	if other := r.Loops()[1].Stats().BusyNanos; other > before+int64(15*time.Millisecond) {
		t.Errorf("the other loop counts %v", time.Duration(other))
	}
	on(t, l, work)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if last := l.Stats().BusyNanos; last < after+int64(20*time.Millisecond) {
		t.Errorf("busy for %d before the last 20ms and for %d at the end", after, last)
	}
}

// TestEndlessWriterYields: a handler that writes more whenever its output has
// drained never comes to rest, but leaves room for others and goes on by itself.
func TestEndlessWriterYields(t *testing.T) {
	const rounds, size = 5 * settleBudget, 11 // all of it fits into the kernel's buffers
	r := start(t, Options{HighWater: 10, LowWater: 5})
	l := r.Loops()[0]
	n := 0
	more := func(c *Conn) {
		if n++; n > rounds {
			c.Close()
			return
		}
		c.Write(make([]byte, size))
	}
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		return &probe{read: func(c *Conn, _ []byte) { more(c) }, drained: more}
	})
	nc := dialTCP(t, ln.Addr())
	before := l.Stats().Wakeups
	mustWrite(t, nc, []byte("x"))
	mustRead(t, nc, rounds*size)
	if turns := l.Stats().Wakeups - before; turns == 0 {
		t.Error("all was written in one turn")
	}
}

// TestStaleEvents: events that belong to a former owner of the descriptor
// number do no harm, whatever they say and in whatever state the new owner is.
func TestStaleEvents(t *testing.T) {
	r := start(t, Options{})
	l := r.Loops()[0]
	accepted := make(chan *Conn, 1)
	closed := make(chan error, 2)
	drained := 0
	ln := listenOn(t, r, func(_ *Loop, c *Conn) Handler {
		accepted <- c
		return &probe{
			read:    func(c *Conn, p []byte) { c.Write(p) },
			drained: func(*Conn) { drained++ },
			closed:  func(_ *Conn, err error) { closed <- err },
		}
	})
	nc := dialTCP(t, ln.Addr())
	c := receive(t, accepted, "connection")
	hurl := func() {
		for ev := range uint32(1 << 5) { // IN, PRI, OUT, ERR, HUP
			l.onEvent(c.fd, ev|unix.EPOLLRDHUP)
		}
	}
	on(t, l, hurl)
	on(t, l, func() { c.PauseRead(); hurl(); c.ResumeRead(); hurl() })
	on(t, l, func() {
		for _, fd := range []int{0, l.inbox.fd, l.alarm.fd, 1 << 20} {
			l.onEvent(fd, unix.EPOLLIN)
		}
	})
	mustWrite(t, nc, []byte("alive"))
	if got := string(mustRead(t, nc, 5)); got != "alive" {
		t.Errorf("read %q", got)
	}

	// A connection that is still connecting: nothing accepts, the queue is full.
	addr := fullQueue(t)
	var dialing *Conn
	on(t, l, func() {
		var err error
		if dialing, err = l.Dial(addr, &probe{connect: func(*Conn) { t.Error("connected") }}); err != nil {
			t.Fatal(err)
		}
		c = dialing
		hurl()
		if dialing.Closed() || dialing.flags&flagConnecting == 0 {
			t.Error("a stale event ended the connect")
		}
		dialing.Abort(nil)
	})
	if len(closed) > 0 {
		t.Errorf("closed: %v", <-closed)
	}
}

// fullQueue returns an address whose accept queue is full, so that a SYN gets no
// answer.
func fullQueue(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	addr, _ := localAddr(fd)
	for range 3 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(c) })
		_ = unix.Connect(c, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: [4]byte{127, 0, 0, 1}})
	}
	return addr
}
