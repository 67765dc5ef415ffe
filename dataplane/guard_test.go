package dataplane

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/pressure"
)

// asker is a client connection that asks by hand.
type asker struct {
	net.Conn
	r *bufio.Reader
}

func connect(t testing.TB, addr string) *asker {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &asker{c, bufio.NewReader(c)}
}

func (a *asker) send(t testing.TB, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(a, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

// status reads an answer within d; 0 when none came.
func (a *asker) status(d time.Duration) int {
	_ = a.SetReadDeadline(time.Now().Add(d))
	resp, err := http.ReadResponse(a.r, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

const patience = 30 * time.Second

// hanging is a backend that answers /hang when release is closed, and others at
// once.
func hanging(t testing.TB) (url string, release chan struct{}) {
	release = make(chan struct{})
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "ok")
	})
	return be.URL, release
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	url, release := hanging(t)
	s := newServer(t, func(o *Options) { o.MaxConnections = 8 })
	addr := apply(t, s, oneRoute(clusterOf("default/be:80", url), nil))
	var busy []*asker
	for range 8 {
		c := connect(t, addr)
		c.send(t, "/hang")
		busy = append(busy, c)
	}
	// Before its request is seen a connection makes room like an idle one.
	eventually(t, "all requests are under way", func() bool { return clusterStats(s)["default/be:80"].Active == 8 })
	eventually(t, "the gate closes", func() bool { return s.Guard().Cause == pressure.ByConnections })
	late := connect(t, addr) // in the kernel's queue
	late.send(t, "/")
	if got := late.status(200 * time.Millisecond); got != 0 {
		t.Fatalf("answered %d beyond the limit", got)
	}
	if n := s.Connections(); n != 8 {
		t.Errorf("%d connections", n)
	}
	// Those that are in go on; one of them ends, and the one that waits gets in.
	close(release)
	for i, c := range busy {
		if got := c.status(patience); got != 200 {
			t.Fatalf("client %d got %d", i, got)
		}
	}
	// None of them closes: those that wait for a request make room.
	late = connect(t, addr)
	late.send(t, "/")
	if got := late.status(patience); got != 200 {
		t.Errorf("the client that waited got %d", got)
	}
	if st := s.Guard(); st.Shuts[pressure.ByConnections] == 0 {
		t.Errorf("%+v", st)
	}
}

// A snapshot changes the limits of the process while it runs, up and down, and what
// it does not say is as the options do.
func TestLimitsOfASnapshot(t *testing.T) {
	url, release := hanging(t)
	var used atomic.Int64
	s := newServer(t, func(o *Options) {
		o.MaxConnections, o.MemoryLimit = 100, -1
		o.MemoryUsed = used.Load
	})
	snap := oneRoute(clusterOf("default/be:80", url), nil)
	addr := apply(t, s, snap)
	with := func(p ir.Process) {
		t.Helper()
		apply(t, s, &ir.Snapshot{Sockets: snap.Sockets, Clusters: snap.Clusters, Process: p})
	}
	limit := func(connections, memory int64) {
		t.Helper()
		if got, want := s.Guard().Limit, (pressure.Usage{Connections: connections, Memory: memory}); got != want {
			t.Errorf("the limit is %+v, want %+v", got, want)
		}
	}
	limit(100, 0)
	var busy []*asker
	for range 6 {
		c := connect(t, addr)
		c.send(t, "/hang")
		busy = append(busy, c)
	}
	eventually(t, "all are in", func() bool { return s.Connections() == 6 })

	// Down, below what is there: nobody else gets in, and nobody is cut.
	with(ir.Process{MaxConnections: 4})
	limit(4, 0)
	eventually(t, "the gate closes", func() bool { return s.Guard().Cause == pressure.ByConnections })
	eventually(t, "nobody else is answered", func() bool { // an accept may be under way
		c := connect(t, addr)
		c.send(t, "/")
		return c.status(200*time.Millisecond) == 0
	})
	if n := s.Connections(); n < 6 {
		t.Errorf("%d connections, want the 6 that were there", n)
	}
	// Up: the one that waited gets in.
	late := connect(t, addr)
	late.send(t, "/")
	with(ir.Process{MaxConnections: 50})
	if got := late.status(patience); got != 200 {
		t.Errorf("the client that waited got %d", got)
	}
	// Down again, and back to the option by saying nothing.
	with(ir.Process{MaxConnections: 1})
	eventually(t, "the gate closes", func() bool { return s.Guard().Cause == pressure.ByConnections })
	with(ir.Process{})
	limit(100, 0)
	eventually(t, "the gate opens", func() bool { return s.Guard().Cause == pressure.NoCause })

	// Memory, which is looked at when the limit comes.
	used.Store(900)
	with(ir.Process{MemoryLimit: 1000})
	limit(100, 1000)
	eventually(t, "the gate closes", func() bool { return s.Guard().Cause == pressure.ByMemory })
	with(ir.Process{MemoryLimit: 2000})
	eventually(t, "the gate opens", func() bool { return s.Guard().Cause == pressure.NoCause })

	close(release)
	for i, c := range busy {
		if got := c.status(patience); got != 200 {
			t.Errorf("client %d, who was in all the time, got %d", i, got)
		}
	}
	// A snapshot that is refused changes nothing.
	if res := s.Apply(&ir.Snapshot{Process: ir.Process{MaxConnections: -1}}); res.Err == nil {
		t.Error("a negative limit was taken")
	}
	limit(100, 2000)
}

func TestMemoryLimit(t *testing.T) {
	url, _ := hanging(t)
	var used atomic.Int64
	s := newServer(t, func(o *Options) {
		o.MemoryLimit = 1000
		o.MemoryUsed = used.Load
	})
	snap := oneRoute(clusterOf("default/be:80", url), nil)
	addr := apply(t, s, snap)
	first := connect(t, addr)
	first.send(t, "/")
	if got := first.status(patience); got != 200 {
		t.Fatalf("got %d", got)
	}
	used.Store(900)
	eventually(t, "the gate closes", func() bool {
		c, err := net.Dial("tcp", addr) // the memory is looked at when one is accepted
		if err == nil {
			_ = c.Close()
		}
		return s.Guard().Cause == pressure.ByMemory
	})
	first.send(t, "/") // who is in is served
	if got := first.status(patience); got != 200 {
		t.Errorf("a connection that was open got %d", got)
	}
	// A socket that is added meanwhile accepts nothing either.
	more := oneRoute(snap.Clusters[0], nil)
	more.Sockets = append(more.Sockets, snap.Sockets[0])
	if more.Sockets[0].Name > more.Sockets[1].Name {
		more.Sockets[0], more.Sockets[1] = more.Sockets[1], more.Sockets[0]
	}
	apply(t, s, more)
	var late []*asker
	for _, k := range more.Sockets {
		c := connect(t, k.Addr.String())
		c.send(t, "/")
		if got := c.status(200 * time.Millisecond); got != 0 {
			t.Errorf("%s answered %d while the gate was closed", k.Name, got)
		}
		late = append(late, connect(t, k.Addr.String()))
		late[len(late)-1].send(t, "/")
	}
	used.Store(100)
	for i, c := range late {
		if got := c.status(patience); got != 200 {
			t.Errorf("socket %d answers %d after the memory was free", i, got)
		}
	}
}

func TestLimitsByDefault(t *testing.T) {
	s := newServer(t, nil)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if got := s.Guard().Limit.Connections; got <= 0 || uint64(got) >= l.Cur {
		t.Errorf("%d connections of %d descriptors", got, l.Cur)
	}
	if n := liveMemory(); n <= 0 || n > 1<<40 {
		t.Errorf("live memory is %d", n)
	}
	if got := newServer(t, func(o *Options) { o.MaxConnections, o.MemoryLimit = -1, -1 }).Guard().Limit; got != (pressure.Usage{}) {
		t.Errorf("switched off: %+v", got)
	}
}

// TestNoDescriptors runs itself in a process that may open few descriptors, and
// takes them all: the server goes on with what it has, sheds what it can't
// accept, answers 502 where it can't connect, and recovers.
func TestNoDescriptors(t *testing.T) {
	const variable = "DATAPLANE_TEST_NO_DESCRIPTORS"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptors$", "-test.count=1")
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s := newServer(t, func(o *Options) { o.MaxConnections = -1 })
	cluster := clusterOf("default/be:80", be.URL)
	addr := apply(t, s, oneRoute(cluster, nil))
	survivor := connect(t, addr)
	survivor.send(t, "/")
	if got := survivor.status(patience); got != 200 {
		t.Fatalf("got %d", got)
	}
	var sockets []int // clients need descriptors too
	for range 10 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, fd)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 150, Max: 150}); err != nil {
		t.Fatal(err)
	}
	var filler []int
	fill := func() {
		for {
			fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if errors.Is(err, unix.EMFILE) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			filler = append(filler, fd)
		}
	}
	fill()
	port := 0
	if _, err := fmt.Sscanf(addr, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	for _, fd := range sockets {
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	// Each takes a descriptor for a moment, which the upstream's could be.
	eventually(t, "the connections are shed", func() bool { _, shed := s.Accepts(); return int(shed) >= len(sockets) })
	// The pooled connection to the backend still serves; a new one can't be made.
	survivor.send(t, "/")
	if got := survivor.status(patience); got != 200 {
		t.Errorf("with a pooled connection: %d", got)
	}
	held := len(filler)
	be.CloseClientConnections()
	eventually(t, "both ends of the pooled connection are gone", func() bool {
		fill()
		return len(filler) >= held+2
	})
	survivor.send(t, "/")
	if got := survivor.status(patience); got != 502 {
		t.Errorf("without a descriptor for the upstream: %d, want 502", got)
	}
	for _, fd := range append(filler, sockets...) {
		_ = unix.Close(fd)
	}
	survivor.send(t, "/")
	if got := survivor.status(patience); got != 200 {
		t.Errorf("when descriptors were free again: %d", got)
	}
	eventually(t, "a new connection is served", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		a := &asker{c, bufio.NewReader(c)}
		defer a.Close()
		a.send(t, "/")
		return a.status(5*time.Second) == 200
	})
}
