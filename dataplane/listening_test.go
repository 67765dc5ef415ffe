package dataplane

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// fakePredecessor has sockets for addresses.
type fakePredecessor struct {
	inherited, late map[netip.AddrPort][]int
	beside          bool
	asked           int
}

func (p *fakePredecessor) Inherited(a netip.AddrPort) []int { return take(p.inherited, a) }
func (p *fakePredecessor) Ask(a netip.AddrPort) []int       { p.asked++; return take(p.late, a) }
func (p *fakePredecessor) Beside() bool                     { return p.beside }

func take(m map[netip.AddrPort][]int, a netip.AddrPort) []int {
	fds := m[a]
	delete(m, a)
	return fds
}

// fetch answers what is served at addr, or the error.
func fetch(addr string) string {
	c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + addr + "/")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// handOver returns the descriptors of what a server listens on, as another
// process gets them.
func handOver(t *testing.T, s *Server) map[netip.AddrPort][]int {
	t.Helper()
	list, err := s.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	out := map[netip.AddrPort][]int{}
	for _, k := range list {
		fd, err := syscall.Dup(int(k.File.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		out[k.Addr] = append(out[k.Addr], fd)
		_ = k.File.Close()
	}
	return out
}

func TestSocketsAreTakenOver(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	addr := snap.Sockets[0].Addr
	for name, prepare := range map[string]func(*testing.T, *Server, *fakePredecessor){
		"handed over": func(t *testing.T, old *Server, p *fakePredecessor) { p.inherited = handOver(t, old) },
		"asked for":   func(t *testing.T, old *Server, p *fakePredecessor) { p.late = handOver(t, old) },
		"beside":      func(_ *testing.T, _ *Server, p *fakePredecessor) { p.beside = true },
		"what is no socket": func(t *testing.T, old *Server, p *fakePredecessor) {
			p.inherited, p.late = noSocket(t, addr), handOver(t, old)
		},
		"a port that was freed": func(t *testing.T, old *Server, _ *fakePredecessor) { old.Drain(0) },
	} {
		t.Run(name, func(t *testing.T) {
			old := newServer(t, func(o *Options) { o.Reactor.Share = true })
			apply(t, old, snap)
			p := &fakePredecessor{}
			prepare(t, old, p)
			s := newServer(t, func(o *Options) { o.Predecessor = p })
			apply(t, s, snap)
			old.Pause()
			if name == "beside" {
				old.Drain(0) // a paused socket would keep its share of connections
			}
			for range 8 {
				if got := fetch(addr.String()); got != "ok" {
					t.Fatal(got)
				}
			}
			if s.Loops()[0].Accepted+s.Loops()[1].Accepted < 8 {
				t.Error("the new server did not accept")
			}
		})
	}
	t.Run("nobody gives it", func(t *testing.T) {
		old := newServer(t, nil)
		apply(t, old, snap)
		p := &fakePredecessor{beside: true} // but the old one does not let it
		s := newServer(t, func(o *Options) { o.Predecessor = p })
		r := s.Apply(snap)
		if !errors.Is(r.Sockets[snap.Sockets[0].Name], syscall.EADDRINUSE) || p.asked != 1 {
			t.Errorf("got %+v after %d questions", r, p.asked)
		}
	})
}

func noSocket(t *testing.T, a netip.AddrPort) map[netip.AddrPort][]int {
	t.Helper()
	fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return map[netip.AddrPort][]int{a: {fd}}
}

// A paused server keeps its sockets and leaves new ones to the other process;
// when that is gone it has them all.
func TestPauseAndResume(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	addr := apply(t, s, snap)
	s.Resume() // nothing to resume
	s.Pause()
	waiting := make(chan string, 1)
	go func() { waiting <- fetch(addr) }()
	more := oneRoute(clusterOf("default/be:80", be.URL), nil)
	late := more.Sockets[0].Name
	more.Sockets = append(more.Sockets, snap.Sockets...)
	slices.SortFunc(more.Sockets, func(a, b *ir.Socket) int { return strings.Compare(a.Name, b.Name) })
	apply(t, s, more)
	if c, err := net.Dial("tcp", late); err == nil {
		c.Close()
		t.Error("a paused server opened a socket")
	}
	if list, err := s.Sockets(); err != nil || len(list) != 1 {
		t.Errorf("%d sockets, %v", len(list), err)
	} else {
		_ = list[0].File.Close()
	}
	select {
	case got := <-waiting:
		t.Errorf("a paused server answered: %s", got)
	case <-time.After(50 * time.Millisecond):
	}
	stranger, err := net.Listen("tcp", late) // is faster
	if err != nil {
		t.Fatal(err)
	}
	s.Resume()
	if got := <-waiting; got != "ok" {
		t.Error(got)
	}
	stranger.Close()
	for end := time.Now().Add(20 * time.Second); fetch(late) != "ok"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the socket is not opened: %s", fetch(late))
		}
	}
	s.Drain(0)
	s.Resume() // too late
	if c, err := net.Dial("tcp", late); err == nil {
		c.Close()
		t.Error("a draining server listens")
	}
}
