package envtest

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/port"
)

// withPorts has a replica find out about the ports of this host.
func withPorts(o *controllers.ManagerOptions) { o.Ports = port.New(port.Options{}) }

// leaseHolder is who leads the replicas of a world, and since when he was last
// heard of.
type leaseHolder struct {
	name     string // of the Lease; default leader
	identity string
	renewed  time.Time
}

func (l *leaseHolder) read(w *world) error {
	var lease coordinationv1.Lease
	if err := w.Get(w.ctx, types.NamespacedName{Namespace: w.name, Name: cmp.Or(l.name, "leader")}, &lease); err != nil {
		return err
	}
	if lease.Spec.HolderIdentity != nil {
		l.identity = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		l.renewed = lease.Spec.RenewTime.Time
	}
	return nil
}

// holdPortEnv makes the test binary a process that holds a port and does nothing
// else.
const holdPortEnv = "HEADGATE_TEST_HOLD_PORT"

func holdPortMain() int {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, ln.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends it
	return 0
}

// otherProcess holds a port.
type otherProcess struct {
	pid, port int
	stop      func()
}

func holdPort(t *testing.T) otherProcess {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holdPortEnv+"=1")
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
	stop := sync.OnceFunc(func() {
		in.Close()
		if err := child.Wait(); err != nil {
			t.Error("the process that holds a port:", err)
		}
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return otherProcess{pid: child.Process.Pid, port: int(netip.MustParseAddrPort(strings.TrimSpace(line)).Port()), stop: stop}
}
