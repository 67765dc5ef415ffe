package handover

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stranger is a raw connection to a process that serves.
func stranger(t testing.TB, dir string) *peer {
	t.Helper()
	c, err := net.Dial("unixpacket", filepath.Join(dir, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &peer{conn: c.(*net.UnixConn), now: time.Now}
}

// want receives a message of the type, and closes its descriptors.
func (p *peer) want(t testing.TB, kind string) *message {
	t.Helper()
	m, fds, err := p.receive(10 * time.Second)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	closeAll(fds)
	if m.Type != kind {
		t.Fatalf("got %+v, want %s", m, kind)
	}
	return m
}

// ended wants nothing but the connection's end.
func (p *peer) ended(t testing.TB) {
	t.Helper()
	m, fds, err := p.receive(10 * time.Second)
	closeAll(fds)
	if ne, ok := err.(net.Error); err == nil || ok && ne.Timeout() {
		t.Errorf("got %+v, %v; want the end", m, err)
	}
}

// passes tells that a proper process still gets the sockets.
func passes(t *testing.T, dir string, addr netip.AddrPort) {
	t.Helper()
	p := open(t, dir, nil)
	eventually(t, "a proper process gets the sockets", func() bool {
		p.Take(t.Context())
		fds := p.Inherited(Traffic, addr)
		closeAll(fds)
		return len(fds) > 0
	})
	p.Close()
}

func TestGarbageIsRefused(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 1)
	before := descriptors(t)
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	proper, err := hello("x").encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"text": "GET / HTTP/1.1\r\n\r\n", "not a message": "[]", "no type": "{}", "half": string(proper[:len(proper)/2]),
		"another one first": `{"type":"serving"}`, "no version": `{"type":"hello"}`, "upside down": `{"type":"hello","newest":1,"oldest":2}`,
		"long": `{"type":"hello","build":"` + strings.Repeat("x", maxMessage) + `"}`, "NUL": "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			p := stranger(t, dir)
			if _, _, err := p.conn.WriteMsgUnix([]byte(data), unix.UnixRights(int(null.Fd())), nil); err != nil {
				t.Fatal(err)
			}
			p.ended(t)
		})
	}
	p := stranger(t, dir) // says nothing
	p.ended(t)
	if got := old.gate.saying(); len(got) > 0 {
		t.Errorf("the process that serves was told %v", got)
	}
	eventually(t, "all are counted", func() bool { return old.Stats().Refused == 10 })
	if !old.logged("a process that asked for the sockets makes no sense, and was refused") {
		t.Error("the log does not tell")
	}
	passes(t, dir, addrs[0])
	eventually(t, "no descriptor stays open", func() bool { return descriptors(t) <= before+2 })
}

func TestFloodIsBounded(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 1)
	var all []*peer
	for range 60 {
		p := stranger(t, dir)
		_ = p.send(hello("flood")) // may be refused already
		all = append(all, p)
	}
	eventually(t, "most are refused", func() bool { return old.Stats().Refused >= 60-maxSessions })
	old.mu.Lock()
	if n := len(old.sessions); n > maxSessions {
		t.Errorf("%d sessions", n)
	}
	old.mu.Unlock()
	if n := old.logs.Len(); n > 30 {
		t.Errorf("%d lines in the log", n)
	}
	for _, p := range all {
		p.conn.Close()
	}
	passes(t, dir, addrs[0])
}

// Another version of the protocol: what it adds is skipped, and what it gave up
// is said.
func TestOtherVersions(t *testing.T) {
	dir := directory(t)
	old, addrs := serving(t, dir, 1)
	future := stranger(t, dir)
	say := func(p *peer, text string) {
		t.Helper()
		if _, err := p.conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	say(future, fmt.Sprintf(`{"type":"hello","newest":%d,"oldest":1,"build":"v9","colour":{"deep":[1]}}`, newestProtocol+8))
	if m := future.want(t, typeHello); m.Newest != newestProtocol || m.Oldest != oldestProtocol {
		t.Errorf("got %+v", m)
	}
	if m := future.want(t, typeSockets); len(m.Sockets) != 1 || m.Sockets[0].Address != addrs[0] || m.More {
		t.Errorf("got %+v", m)
	}
	say(future, `{"type":"telemetry","load":0.5}`)
	say(future, `{"type":"serving","since":"now"}`)
	future.want(t, typePaused)
	if got := old.gate.saying(); fmt.Sprint(got) != "[pause]" {
		t.Errorf("the old process was told %v", got)
	}
	say(future, `{"type":"bye","reason":"a reason of the future"}`)
	eventually(t, "it serves again", func() bool { return old.Stats().Accepting })

	foreign := stranger(t, dir)
	say(foreign, fmt.Sprintf(`{"type":"hello","newest":%d,"oldest":%d,"build":"v99"}`, newestProtocol+8, newestProtocol+1))
	if m := foreign.want(t, typeBye); m.Reason != byeVersion {
		t.Errorf("got %+v", m)
	}
	foreign.ended(t)

	chatty := stranger(t, dir)
	say(chatty, string(must(hello("chatty").encode())))
	chatty.want(t, typeHello)
	chatty.want(t, typeSockets)
	for range maxStrange + 1 {
		if _, err := chatty.conn.Write([]byte(`{"type":"telemetry"}`)); err != nil {
			break
		}
	}
	chatty.ended(t)
}

func must(p []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return p
}

// A process of another user gets nothing and gives nothing.
func TestStrangersAreRefused(t *testing.T) {
	dir := directory(t)
	asNobody := func(*net.UnixConn) (uint32, error) { return uint32(os.Geteuid()) + 4242, nil }
	var strange atomic.Bool
	old := open(t, dir, func(o *Options) {
		o.identify = func(c *net.UnixConn) (uint32, error) {
			if strange.Load() {
				return asNobody(c)
			}
			return identify(c)
		}
	})
	addr := old.gate.listen(t)
	if err := old.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	strange.Store(true)
	q := stranger(t, dir)
	_ = q.send(hello("x"))
	q.ended(t)
	if !old.logged("a stranger asked for the sockets, and was refused") {
		t.Error("the log of the old one does not tell")
	}
	strange.Store(false)
	p := open(t, dir, func(o *Options) { o.identify = asNobody })
	p.Take(t.Context())
	if fds := p.Inherited(Traffic, addr); len(fds) > 0 {
		t.Error("sockets were taken from a stranger")
	}
	if !p.logged("the process that serves does not hand its sockets over") {
		t.Error("the log of the new one does not tell")
	}
}

// The same with a real process of another user, which only the superuser can
// start: the kernel tells who it is.
func TestAnotherUserIsRefused(t *testing.T) {
	const variable = "HANDOVER_TEST_SOCKET"
	if path := os.Getenv(variable); path != "" {
		c, err := net.Dial("unixpacket", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p := &peer{conn: c.(*net.UnixConn), now: time.Now}
		_ = p.send(hello("stranger"))
		p.ended(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Log("not the superuser: TestStrangersAreRefused has an invented user")
		return
	}
	dir := directory(t)
	old, _ := serving(t, dir, 1)
	path := filepath.Join(dir, socketFile)
	// As wide as the checks let it be, and wider.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAnotherUserIsRefused$", "-test.count=1")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), variable+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !old.logged("a stranger asked for the sockets, and was refused") || old.Stats().Refused != 1 {
		t.Errorf("the log does not tell: %+v", old.Stats())
	}
}

// impostor answers as the process before this one, in the way of answer.
func impostor(t *testing.T, dir string, answer func(*peer)) {
	t.Helper()
	ln, err := Listen("unixpacket", filepath.Join(dir, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			answer(&peer{conn: c, now: time.Now})
			c.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
}

// What an old process says is checked: a new one takes no descriptor that is not
// what it should be, is not kept waiting, and serves all the same.
func TestBadPredecessors(t *testing.T) {
	var g fakeGate
	good := g.listen(t)
	file, err := g.sockets[0].File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listening := int(file.Fd())
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	socket := func(domain, kind int, addr unix.Sockaddr) int {
		fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if addr != nil {
			if err := unix.Bind(fd, addr); err != nil {
				t.Fatal(err)
			}
		}
		return fd
	}
	udp := socket(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	idle := socket(unix.AF_INET, unix.SOCK_STREAM, nil)
	both := socket(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{})
	if err := unix.Listen(both, 1); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(both)
	if err != nil {
		t.Fatal(err)
	}
	dual := netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(sa.(*unix.SockaddrInet6).Port))
	elsewhere := netip.MustParseAddrPort("127.0.0.1:1")
	sockets := func(more bool, names ...name) *message {
		return &message{Type: typeSockets, Sockets: names, More: more}
	}
	greeted := func(then func(*peer)) func(*peer) {
		return func(p *peer) {
			if _, fds, err := p.receive(patience); err == nil {
				closeAll(fds)
				_ = p.send(hello("impostor"))
				then(p)
				_, fds, _ = p.receive(patience) // until the other one has enough
				closeAll(fds)
			}
		}
	}
	for name, answer := range map[string]func(*peer){
		"closes at once":      func(*peer) {},
		"says nothing":        func(p *peer) { p.receive(patience); p.receive(2 * patience) },
		"garbage":             func(p *peer) { p.receive(patience); p.conn.Write([]byte("\xff")) },
		"another version":     func(p *peer) { p.receive(patience); p.conn.Write([]byte(`{"type":"hello","newest":9,"oldest":9}`)) },
		"hello only":          greeted(func(*peer) {}),
		"half of the sockets": greeted(func(p *peer) { p.send(sockets(true)); p.conn.Close() }),
		"endless": greeted(func(p *peer) {
			for p.send(sockets(true)) == nil {
			}
		}),
		"fewer descriptors":    greeted(func(p *peer) { p.send(sockets(false, name{Traffic, good}, name{Traffic, good}), listening) }),
		"more descriptors":     greeted(func(p *peer) { p.send(sockets(false), listening) }),
		"more than expected":   greeted(func(p *peer) { p.send(sockets(false), repeat(listening, maxBatch+60)...) }),
		"a file":               greeted(func(p *peer) { p.send(sockets(false, name{Traffic, good}), int(null.Fd())) }),
		"UDP":                  greeted(func(p *peer) { p.send(sockets(false, name{Traffic, good}), udp) }),
		"does not listen":      greeted(func(p *peer) { p.send(sockets(false, name{Traffic, good}), idle) }),
		"another address":      greeted(func(p *peer) { p.send(sockets(false, name{Traffic, elsewhere}), listening) }),
		"both families":        greeted(func(p *peer) { p.send(sockets(false, name{Traffic, dual}), both) }),
		"a role of the future": greeted(func(p *peer) { p.send(sockets(false, name{"gossip", good}), listening) }),
	} {
		t.Run(name, func(t *testing.T) {
			before := descriptors(t)
			dir := directory(t)
			impostor(t, dir, answer)
			p := open(t, dir, nil)
			p.Take(t.Context())
			for _, role := range []string{Traffic, Admin, "gossip"} {
				for _, a := range []netip.AddrPort{good, elsewhere, dual} {
					if fds := p.Inherited(role, a); len(fds) > 0 {
						t.Errorf("took %v for %s %v", fds, role, a)
					}
				}
			}
			if err := p.Serving(t.Context()); err != nil || !p.own() {
				t.Errorf("Serving: %v", err)
			}
			p.Close()
			eventually(t, "no descriptor stays open", func() bool { return descriptors(t) <= before+2 })
		})
	}
}

func repeat(fd, n int) []int {
	var out []int
	for range n {
		out = append(out, fd)
	}
	return out
}

// FuzzDecode: whatever comes, there is a message with a type or an error, and
// what was understood can be said again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"type":"hello","newest":1,"oldest":1}`, `{"type":"sockets","sockets":[{"role":"traffic","address":"[::1]:80"}],"more":true}`, `{}`, "\x00", `{"type":"x","sockets":[{"address":"0.0.0.0:0"}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		_ = agree(m)
		again, err := m.encode()
		if err != nil {
			if len(data) < maxMessage/8 {
				t.Fatal(err)
			}
			return
		}
		back, err := decode(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if third, err := json.Marshal(back); err != nil || string(third) != string(again) {
			t.Fatalf("%s became %s: %v", again, third, err)
		}
	})
}
