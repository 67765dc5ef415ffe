//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOutOfDescriptors runs itself in a process that may open few descriptors,
// takes them all, and sees that the acceptor backs off, sheds, does not spin,
// and recovers when descriptors are free again.
func TestOutOfDescriptors(t *testing.T) {
	const variable = "REACTOR_TEST_WORKERS"
	if workers, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		exhaust(t, workers)
		return
	}
	for name, workers := range map[string]int{"the loop accepts": 1, "the acceptor accepts": 2} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestOutOfDescriptors$", "-test.count=1")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, workers))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

func exhaust(t *testing.T, workers int) {
	r := start(t, Options{Workers: workers})
	l := r.Loops()[0]
	ln := listenOn(t, r, echo)
	stats := r.AcceptorStats
	survivor := dialTCP(t, ln.Addr())
	mustWrite(t, survivor, []byte("x"))
	mustRead(t, survivor, 1)

	// Clients first: they need descriptors too.
	const n = 12
	var clients []int
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, fd)
	}
	limit := unix.Rlimit{Cur: 200, Max: 200}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var filler []int
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		filler = append(filler, fd)
	}
	addr := &unix.SockaddrInet4{Port: int(ln.Addr().Port()), Addr: [4]byte{127, 0, 0, 1}}
	for _, fd := range clients {
		if err := unix.Connect(fd, addr); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "one is shed", func() bool { return stats().Shed > 0 })
	if n, err := unix.Read(clients[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the first client read %d bytes, %v; want the end of file", n, err)
	}
	events, begin := stats().Events, time.Now()
	mustWrite(t, survivor, []byte("y"))
	mustRead(t, survivor, 1)
	eventually(t, "a second one is shed", func() bool { return stats().Shed > 1 })
	time.Sleep(100 * time.Millisecond)
	if rate := float64(stats().Events-events) / time.Since(begin).Seconds(); rate > 500 {
		t.Errorf("%.0f events per second without descriptors", rate)
	}
	if s := stats(); s.AcceptErrors < s.Shed || s.Shed > n/2+2 {
		t.Errorf("%d failures, %d shed", s.AcceptErrors, s.Shed)
	}
	if failed, shed := r.Accepts(); failed < shed || shed < 2 {
		t.Errorf("Accepts: %d failures, %d shed", failed, shed)
	}
	on(t, l, func() {
		if c, err := l.Dial(ln.Addr(), &probe{}); c != nil || !errors.Is(err, unix.EMFILE) {
			t.Errorf("Dial without descriptors: %v, %v", c, err)
		}
	})
	for _, fd := range filler {
		_ = unix.Close(fd)
	}
	// The last client is served in the end.
	last := clients[n-1]
	if _, err := unix.Write(last, []byte("z")); err != nil {
		t.Fatal(err)
	}
	tv := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(last, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1)
	if k, err := unix.Read(last, p); k != 1 || p[0] != 'z' {
		t.Fatalf("the last client read %d bytes, %v", k, err)
	}
	nc, err := net.Dial("tcp", fmt.Sprint(ln.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	for _, fd := range clients {
		_ = unix.Close(fd)
	}
}
