package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// fakeGate is a process's accepting, with real sockets.
type fakeGate struct {
	mu      sync.Mutex
	sockets []*net.TCPListener
	said    []string
}

func (g *fakeGate) Sockets() ([]Socket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Socket
	for _, ln := range g.sockets {
		f, err := ln.File()
		if err != nil {
			return nil, err
		}
		out = append(out, Socket{Traffic, address(ln), f})
	}
	return out, nil
}

func (g *fakeGate) Pause()  { g.say("pause") }
func (g *fakeGate) Resume() { g.say("resume") }

func (g *fakeGate) say(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said = append(g.said, s)
}

func (g *fakeGate) saying() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.said)
}

// listen adds a socket.
func (g *fakeGate) listen(t testing.TB) netip.AddrPort {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	ln, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets = append(g.sockets, ln.(*net.TCPListener))
	return address(ln)
}

func address(ln net.Listener) netip.AddrPort { return netip.MustParseAddrPort(ln.Addr().String()) }

// process is a Handover with its gate and its log.
type process struct {
	*Handover
	gate *fakeGate
	logs *observer.ObservedLogs
}

func open(t testing.TB, dir string, change func(*Options)) *process {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	p := &process{gate: &fakeGate{}, logs: logs}
	o := Options{Dir: dir, Build: "build-of-" + t.Name(), Gate: p.gate, Logger: zap.New(core), Now: time.Now}
	if change != nil {
		change(&o)
	}
	h, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Handover = h
	t.Cleanup(func() {
		h.Close()
		if t.Failed() {
			for _, e := range logs.All() {
				t.Log(e.Level, e.Message, e.ContextMap())
			}
		}
	})
	return p
}

// serving returns a process that serves n sockets.
func serving(t testing.TB, dir string, n int) (*process, []netip.AddrPort) {
	t.Helper()
	p := open(t, dir, nil)
	var addrs []netip.AddrPort
	for range n {
		addrs = append(addrs, p.gate.listen(t))
	}
	p.Take(t.Context())
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, addrs
}

// directory is one with a short name.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hg-") //nolint:usetesting // the path of a socket can't be as long as those of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func (p *process) logged(message string) bool { return p.logs.FilterMessage(message).Len() > 0 }

// descriptors counts those of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// accepts tells whether a connection to addr comes to a descriptor.
func accepts(t *testing.T, fd int, addr netip.AddrPort) {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dup, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(dup), "inherited")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	got, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got.Close()
}

func TestSocketsPassOn(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 3*maxBatch+7)
	before := descriptors(t)
	p := open(t, dir, nil)
	p.Take(t.Context())
	for _, a := range addrs[1:] {
		fds := p.Inherited(Traffic, a)
		if len(fds) != 1 {
			t.Fatalf("%d descriptors for %v", len(fds), a)
		}
		if a == addrs[1] {
			accepts(t, fds[0], a)
		}
		closeAll(fds)
	}
	if fds := p.Inherited(Traffic, addrs[1]); len(fds) > 0 {
		t.Error("a socket was given twice")
	}
	if fds := p.Inherited(Admin, addrs[0]); len(fds) > 0 {
		t.Error("a socket of another role was given")
	}
	if len(old.gate.saying()) > 0 {
		t.Error("the old process was stopped before the new one served")
	}
	select {
	case <-old.Succeeded():
		t.Error("there is a successor before it serves")
	default:
	}
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := old.gate.saying(); !slices.Equal(got, []string{"pause"}) {
		t.Errorf("the old process was told %v", got)
	}
	<-old.Succeeded()
	if !p.own() || old.own() {
		t.Error("the path does not lead to the new process")
	}
	if s := old.Stats(); s.Given != 1 || s.Accepting || s.Taken != 0 {
		t.Errorf("the old one's figures: %+v", s)
	}
	if s := p.Stats(); s.Taken != 1 || !s.Accepting || s.Sockets != len(addrs)-1 {
		t.Errorf("the new one's figures: %+v", s)
	}
	old.Leave(t.Context())
	eventually(t, "the new one learns of the end", func() bool { return p.before() == nil })
	if !p.logged("the process before this one is gone or drains") {
		t.Error("it does not say so")
	}
	if got := old.gate.saying(); !slices.Equal(got, []string{"pause"}) {
		t.Errorf("after it left, the old process was told %v", got)
	}
	p.Close()
	old.Close()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
	if _, err := os.Stat(filepath.Join(dir, socketFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the path is left behind: %v", err)
	}
}

func TestNoPredecessor(t *testing.T) {
	dir := directory(t)
	p := open(t, dir, nil)
	p.Take(t.Context())
	if !p.logged("no process to take sockets over from") || p.Beside() {
		t.Error("there seems to be a process before the first")
	}
	if fds := p.Ask(Traffic, netip.MustParseAddrPort("127.0.0.1:80")); fds != nil {
		t.Errorf("got %v from nobody", fds)
	}
	// One that was killed leaves its socket.
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, socketFile), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.own() {
		t.Error("the stale socket was not replaced")
	}
	// One that lives and does not answer: its ports may be ours.
	os.Remove(filepath.Join(dir, socketFile))
	next := open(t, dir, nil)
	next.Take(t.Context())
	if !next.Beside() {
		t.Error("nobody seems to use the directory")
	}
}

// The socket of a listener that came after the hand-over is asked for.
func TestAsk(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 2)
	p := open(t, dir, nil)
	p.Take(t.Context())
	late := old.gate.listen(t)
	fds := p.Ask(Traffic, late)
	if len(fds) != 1 {
		t.Fatalf("got %v", fds)
	}
	accepts(t, fds[0], late)
	closeAll(fds)
	if fds := p.Ask(Traffic, netip.MustParseAddrPort("127.0.0.1:1")); len(fds) > 0 {
		t.Error("got a socket that nobody has")
	}
	for _, a := range addrs {
		fds := p.Inherited(Traffic, a)
		if len(fds) != 1 {
			t.Errorf("%d descriptors for %v after another address was asked for", len(fds), a)
		}
		closeAll(fds)
	}
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	later := old.gate.listen(t)
	fds = p.Ask(Traffic, later)
	if len(fds) != 1 {
		t.Fatalf("after it serves: got %v", fds)
	}
	closeAll(fds)
	// Two began at once and found nobody; the port is the other one's.
	dir = directory(t)
	second := open(t, dir, nil)
	second.Take(t.Context())
	_, addrs = serving(t, dir, 2)
	fds = second.Ask(Traffic, addrs[1])
	if len(fds) != 1 {
		t.Fatalf("from one that came later: got %v", fds)
	}
	closeAll(fds)
	if fds := second.Inherited(Traffic, addrs[0]); len(fds) > 0 {
		t.Error("kept a socket that nobody asked for")
	}
}

func TestNewProcessIsLost(t *testing.T) {
	dir := directory(t)
	old, _ := serving(t, dir, 1)
	p := open(t, dir, nil)
	p.Take(t.Context())
	p.before().conn.Close() // as if it were killed
	eventually(t, "the loss is noticed", func() bool { return old.logged("a new process went before it served; nothing has changed") })
	if got := old.gate.saying(); len(got) > 0 {
		t.Errorf("the old process was told %v", got)
	}
	before := 0
	for round := range 4 {
		p := open(t, dir, nil)
		p.Take(t.Context())
		if err := p.Serving(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.before().conn.Close()
		eventually(t, "the old one serves again", func() bool { return len(old.gate.saying()) == 2*(round+1) })
		eventually(t, "it takes the path back", old.own)
		if s := old.Stats(); !s.Accepting || s.Resumed != uint64(round+1) {
			t.Errorf("figures: %+v", s)
		}
		p.Close()
		if round == 0 {
			before = descriptors(t)
		} else if n := descriptors(t); n > before {
			t.Errorf("round %d: %d descriptors are open, %d were", round, n, before)
		}
	}
	if got := old.gate.saying(); !slices.Equal(got, slices.Repeat([]string{"pause", "resume"}, 4)) {
		t.Errorf("the old process was told %v", got)
	}
}

// A new process that is told to stop gives the sockets back.
func TestNewProcessStops(t *testing.T) {
	dir := directory(t)
	old, _ := serving(t, dir, 1)
	p, _ := serving(t, dir, 0)
	p.Leave(t.Context())
	eventually(t, "the old one serves again", func() bool { return slices.Equal(old.gate.saying(), []string{"pause", "resume"}) })
	eventually(t, "the path leads to it", old.own)
}

func TestOldProcessIsLost(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 1)
	p := open(t, dir, nil)
	p.Take(t.Context())
	old.Close()
	old.gate.sockets[0].Close()
	eventually(t, "the loss is noticed", func() bool { return p.before() == nil })
	fds := p.Inherited(Traffic, addrs[0])
	if len(fds) != 1 {
		t.Fatalf("got %v", fds)
	}
	accepts(t, fds[0], addrs[0]) // the descriptor outlives the process
	closeAll(fds)
	if err := p.Serving(t.Context()); err != nil || !p.own() {
		t.Errorf("Serving: %v", err)
	}
}

// Two new processes have the sockets: the one that serves first is the one that
// the other follows.
func TestTwoNewProcesses(t *testing.T) {
	dir := directory(t)
	old, _ := serving(t, dir, 1)
	a, b := open(t, dir, nil), open(t, dir, nil)
	a.Take(t.Context())
	b.Take(t.Context())
	if err := a.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p    *process
		said []string
	}{"old": {old, []string{"pause"}}, "first": {a, []string{"pause"}}, "second": {b, nil}} {
		if got := c.p.gate.saying(); !slices.Equal(got, c.said) {
			t.Errorf("the %s one was told %v, want %v", name, got, c.said)
		}
	}
	if !b.own() {
		t.Error("the path does not lead to the last one")
	}
	// The middle one goes: the first one stays out of it.
	a.Leave(t.Context())
	eventually(t, "the first one learns of it", func() bool { return old.logged("the new process has handed over to another one") })
	if got := old.gate.saying(); !slices.Equal(got, []string{"pause"}) {
		t.Errorf("the first one was told %v", got)
	}
}

// A process that is told to stop waits for the one that has its sockets.
func TestLeaveWaitsForTheNext(t *testing.T) {
	dir := directory(t)
	old, _ := serving(t, dir, 1)
	p := open(t, dir, nil)
	p.Take(t.Context())
	left := make(chan struct{})
	go func() {
		old.Leave(context.Background())
		close(left)
	}()
	time.Sleep(50 * time.Millisecond)
	select {
	case <-left:
		t.Fatal("it did not wait")
	default:
	}
	if err := p.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-left
	if got := old.gate.saying(); !slices.Equal(got, []string{"pause"}) {
		t.Errorf("the old one was told %v", got)
	}
	// But not for ever.
	q := open(t, dir, nil)
	q.Take(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p.Leave(ctx)
	if !p.logged("the new process does not serve yet; draining all the same") {
		t.Error("it does not say that nobody serves")
	}
	eventually(t, "the new one learns of it", func() bool { return q.before() == nil })
	if err := q.Serving(t.Context()); err != nil || !q.own() {
		t.Errorf("Serving: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := directory(t)
	wide := filepath.Join(dir, "wide")
	if err := os.Mkdir(wide, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(wide, 0o770); err != nil {
		t.Fatal(err)
	}
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked")
	if err := errors.Join(os.Mkdir(linked, 0o700), os.Symlink(file, filepath.Join(linked, lockFile))); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{"missing": filepath.Join(dir, "missing"), "writable": wide, "symbolic link": link, "file": file, "linked lock": linked}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 65533, 65533)); err != nil {
			t.Fatal(err)
		}
		cases["somebody else's"] = foreign
	}
	for name, d := range cases {
		if _, err := Open(Options{Dir: d, Logger: zap.NewNop(), Now: time.Now}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := Open(Options{Dir: dir}); err == nil {
		t.Error("options without a logger were taken")
	}
}

func TestPrepare(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 65532, 65532
	}
	dir := directory(t)
	check := func(path string) {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || int(st.Uid) != uid || int(st.Gid) != gid || st.Mode&0o7777 != 0o700 {
			t.Errorf("%s: %d:%d %o, %v", path, st.Uid, st.Gid, st.Mode, err)
		}
	}
	made := filepath.Join(dir, "made")
	for range 2 { // the second time it is there
		if err := Prepare(made, uid, gid); err != nil {
			t.Fatal(err)
		}
		check(made)
	}
	used := filepath.Join(dir, "used")
	if err := os.Mkdir(used, 0o755); err != nil {
		t.Fatal(err)
	}
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(used, socketFile), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := os.WriteFile(filepath.Join(used, lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(used, uid, gid); err != nil {
		t.Fatal(err)
	}
	check(used)

	file, full, link := filepath.Join(dir, "file"), filepath.Join(dir, "full"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(full, 0o755), os.WriteFile(filepath.Join(full, "passwd"), nil, 0o600),
		os.Symlink(full, link)); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{"a file": file, "other contents": full, "a link": link, "no parent": filepath.Join(dir, "no", "parent")}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 65500, 65500)); err != nil {
			t.Fatal(err)
		}
		cases["somebody else's"] = foreign
	}
	for name, path := range cases {
		if err := Prepare(path, uid, gid); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if fi, err := os.Stat(full); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("a directory that was refused was changed: %v, %v", fi.Mode(), err)
	}
}

func TestPathListener(t *testing.T) {
	path := filepath.Join(directory(t), "s")
	first, err := Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if first.Ours() || !second.Ours() {
		t.Error("the path is not the last one's")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the first one's end took the path along: %v", err)
	}
	c.Close()
	if fi, err := os.Lstat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix", path); err == nil {
		t.Error("a file was replaced")
	}
	if _, err := Listen("unix", filepath.Join(path, fmt.Sprintf("%0100d", 0))); err == nil {
		t.Error("a path that is too long was taken")
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A listener that ends while another one takes the path does not take it along.
func TestPathIsTakenAtTheEnd(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "s")
	last, err := Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		ended := make(chan error, 1)
		go func() { ended <- last.Close() }()
		next, err := Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if !next.Ours() {
			t.Fatal("the path is gone, or another one's")
		}
		last = next
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
