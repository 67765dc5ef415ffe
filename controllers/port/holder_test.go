package port

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
)

// proc is a /proc with one socket of inode 42 on 10.0.0.5:80, which process 812
// has, if it says anything.
func proc(comm, cgroup string) fstest.MapFS {
	m := fstest.MapFS{
		"self/net/tcp": {Data: []byte(heading +
			"   0: 0100007F:0016 00000000:0000 0A 0:0 00:0 0     0        0 7\n" +
			"   1: 0500000A:0050 00000000:0000 0A 0:0 00:0 0    33        0 42\n" +
			"   2: 0500000A:0051 0600000A:D431 01 0:0 00:0 0     0        0 43\n" +
			"   3: 0500000A:0052 00000000:0000 0A 0:0 00:0 0     0        0 44\n")},
		"1/comm":   {Data: []byte("systemd\n")},
		"1/fd/3":   link("socket:[7]"),
		"stat":     {Data: []byte("cpu\n")},
		"900/comm": {Data: []byte("gone\n")}, // without a fd directory
	}
	if comm != "" {
		m["812/comm"] = &fstest.MapFile{Data: []byte(comm + "\n")}
		m["812/cgroup"] = &fstest.MapFile{Data: []byte(cgroup)}
		m["812/fd/0"] = link("/dev/null")
		m["812/fd/5"] = link("socket:[42]")
	}
	return m
}

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

func TestHolder(t *testing.T) {
	const (
		uid   = "0f5a1c3e-1111-2222-3333-444455556666"
		id    = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		inPod = " in the pod with UID " + uid + ", container 0123456789ab"
	)
	systemd := "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + id + ".scope\n"
	for name, c := range map[string]struct {
		comm, cgroup, who, advice string
	}{
		"hidden":           {"", "", "a process of user 33 that is not visible from here: the host's, or another pod's", "ss -ltnp 'sport = :80' on the node"},
		"unknown":          {"python3", "0::/user.slice\n", "python3 (pid 812, user 33)", "stop it or use another port"},
		"nginx":            {"nginx", "0::/system.slice/nginx.service\n", "nginx (pid 812, user 33)", "systemctl disable --now nginx"},
		"nginx in a pod":   {"nginx", systemd, "nginx (pid 812, user 33)" + inPod, "microk8s disable ingress, which also DELETES THE GATEWAY API CRDs"},
		"traefik":          {"traefik", "12:cpu:/kubepods/besteffort/pod" + uid + "/" + id + "\n0::/\n", "traefik (pid 812, user 33)" + inPod, "'disable: [traefik, servicelb]'"},
		"haproxy":          {"haproxy", "", "haproxy (pid 812, user 33)", "systemctl disable --now haproxy"},
		"envoy":            {"envoy", systemd, "envoy (pid 812, user 33)" + inPod, "Envoy Gateway"},
		"apache":           {"apache2", "", "apache2 (pid 812, user 33)", "systemctl disable --now apache2"},
		"another headgate": {"headgate", "", "headgate (pid 812, user 33)", "in an upgrade it goes by itself"},
		"an ugly name":     {"\xffa\x1b[1m\u202eb", "", "?a?[1m?b (pid 812, user 33)", "stop it or use another port"},
		"a pod's":          {"myserver", systemd, "myserver (pid 812, user 33)" + inPod, "kubectl get pods -A"},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(Options{Proc: proc(c.comm, c.cgroup), Pid: 5})
			l, ok := h.Listener(netip.MustParseAddrPort("0.0.0.0:80"))
			if want := (Listener{netip.MustParseAddrPort("10.0.0.5:80"), 33, 42}); !ok || l != want {
				t.Fatalf("listener %v %v, want %v", l, ok, want)
			}
			got := h.Holder(l)
			if got.String() != c.who {
				t.Errorf("held by %s, want %s", got, c.who)
			}
			if !strings.Contains(got.Advice(), c.advice) {
				t.Errorf("advice %q, want %q in it", got.Advice(), c.advice)
			}
		})
	}
}

func TestHolderSelf(t *testing.T) {
	h := New(Options{Proc: proc("headgate", ""), Pid: 812})
	l, _ := h.Listener(netip.MustParseAddrPort("10.0.0.5:80"))
	if got := h.Holder(l); got.String() != "Headgate itself" || !strings.Contains(got.Advice(), "--admin-address") {
		t.Errorf("%s; %s", got, got.Advice())
	}
}

// What is not there is not found, and nothing of it is an error.
func TestNoHolder(t *testing.T) {
	free := netip.MustParseAddrPort("10.0.0.6:80")
	for name, fsys := range map[string]fstest.MapFS{"no table": {}, "broken table": {"self/net/tcp": {Data: []byte(heading + "x\n")}}, "free": proc("nginx", "")} {
		if l, ok := New(Options{Proc: fsys}).Listener(free); ok {
			t.Errorf("%s: %v", name, l)
		}
	}
	// The kernel lists the listening sockets first: the rest is not read.
	if l, ok := New(Options{Proc: proc("nginx", "")}).Listener(netip.MustParseAddrPort("10.0.0.5:82")); ok {
		t.Errorf("read past the sockets that listen: %v", l)
	}
}

const childEnv = "HEADGATE_TEST_HOLD_PORT"

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, ln.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
}

// Another process holds a port of this machine, and is found.
func TestHolderOfThisMachine(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		in.Close()
		_ = child.Wait() // it may have ended
	}
	defer end()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(strings.TrimSpace(line))
	h := New(Options{})
	wildcard := netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())
	l, ok := h.Listener(wildcard)
	if !ok || l.Addr != addr || int(l.UID) != os.Getuid() {
		t.Fatalf("listener %+v %v, want %v of user %d", l, ok, addr, os.Getuid())
	}
	got := h.Holder(l)
	if got.PID != child.Process.Pid || got.Self || got.Command == "" {
		t.Errorf("holder %+v, want pid %d", got, child.Process.Pid)
	}
	end()
	if l, ok := h.Listener(wildcard); ok {
		t.Errorf("the process has ended, and %+v holds the port", l)
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if l, ok = h.Listener(netip.MustParseAddrPort(ln.Addr().String())); !ok || !h.Holder(l).Self {
		t.Errorf("our own socket: %+v %v", l, ok)
	}
}
