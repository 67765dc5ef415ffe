package port

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Options say what a [Host] looks at. Zero means this host.
type Options struct {
	// Proc is the /proc file system.
	Proc fs.FS
	// Dial makes the connections of [Host.Reach].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Pid is this process.
	Pid int
}

// Host is the host as this process sees it: its network, and the processes that
// are visible. Any goroutine may call its methods.
type Host struct {
	proc fs.FS
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	pid  int
}

// New returns a Host.
func New(o Options) *Host {
	if o.Proc == nil {
		o.Proc = os.DirFS("/proc")
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Pid == 0 {
		o.Pid = os.Getpid()
	}
	return &Host{proc: o.Proc, dial: o.Dial, pid: o.Pid}
}

// Listener is a socket that listens.
type Listener struct {
	Addr netip.AddrPort
	UID  uint32
	// Inode tells it from every other socket; it is the same as long as it lives.
	Inode uint64
}

// Listener returns the socket that keeps others from listening on addr; ok is
// false when there is none, or none that can be seen.
func (h *Host) Listener(addr netip.AddrPort) (l Listener, ok bool) {
	for _, table := range tables {
		// A host without IPv6 has no second table.
		_ = h.each(table, func(e entry) bool {
			if e.state == listening && clashes(e.local, addr) {
				l, ok = Listener{e.local, e.uid, e.inode}, true
			}
			return !ok && e.state == listening
		})
		if ok {
			return l, true
		}
	}
	return Listener{}, false
}

// Holder is who has a socket that listens.
type Holder struct {
	Listener
	// PID is 0 when the process can't be seen: it belongs to somebody else, and
	// this process may not look, or is in a container.
	PID int
	// Command is the name that the process goes by, 15 bytes at most.
	Command string
	// Pod and Container are set when the process runs in a pod: its UID, and the
	// beginning of the container's ID.
	Pod, Container string
	// Self says that it is this process.
	Self bool
}

// Holder finds out who has the socket. It looks through the processes: some
// milliseconds, so ask once for each socket.
func (h *Host) Holder(l Listener) Holder {
	out := Holder{Listener: l}
	pids, err := fs.ReadDir(h.proc, ".")
	if err != nil {
		return out
	}
	want := "socket:[" + strconv.FormatUint(l.Inode, 10) + "]"
	for _, p := range pids {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || !h.has(p.Name(), want) {
			continue
		}
		// A socket that was passed on is in several; the first has it longest.
		out.PID, out.Self = pid, pid == h.pid
		out.Command = readLine(h.proc, p.Name()+"/comm")
		cgroup, _ := fs.ReadFile(h.proc, p.Name()+"/cgroup") // not in a pod, if it is not there
		out.Pod, out.Container = pod(string(cgroup))
		return out
	}
	return out
}

// has tells whether a process has the socket.
func (h *Host) has(pid, socket string) bool {
	fds, err := fs.ReadDir(h.proc, pid+"/fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if target, err := fs.ReadLink(h.proc, pid+"/fd/"+fd.Name()); err == nil && target == socket {
			return true
		}
	}
	return false
}

var (
	// podPath is how the kubelet names the cgroup of a pod: with the cgroupfs driver
	// ".../pod<uid>/<id>", with systemd's "...-pod<uid with _>.slice/cri-containerd-<id>.scope".
	podPath       = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	containerPath = regexp.MustCompile(`[0-9a-f]{64}`)
)

// pod reads a process's cgroup file.
func pod(cgroup string) (uid, container string) {
	m := podPath.FindStringSubmatch(cgroup)
	if m == nil {
		return "", ""
	}
	container = containerPath.FindString(cgroup)
	return strings.ReplaceAll(m[1], "_", "-"), container[:min(len(container), 12)]
}

// String says who it is, to follow "held by".
func (h Holder) String() string {
	switch {
	case h.Self:
		return "Headgate itself"
	case h.PID == 0:
		return fmt.Sprintf("a process of user %d that is not visible from here: the host's, or another pod's", h.UID)
	}
	s := fmt.Sprintf("%s (pid %d, user %d)", h.Command, h.PID, h.UID)
	if h.Pod != "" {
		s += " in the pod with UID " + h.Pod
	}
	if h.Container != "" {
		s += ", container " + h.Container
	}
	return s
}
