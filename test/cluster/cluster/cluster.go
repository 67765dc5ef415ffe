package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// ErrNotUp tells that no cluster is up in the state directory.
	ErrNotUp = errors.New("no test cluster is up")
	// ErrNoNode tells that the cluster is a control plane only.
	ErrNoNode = errors.New("this cluster has no node: it was started in mode cp")
)

// Cluster is a cluster that is up. Its methods may be used by several
// processes at once, by one goroutine in each.
type Cluster struct {
	layout layout
	state  *state
}

// Open returns the cluster that is up in the state directory dir, or, if dir
// is empty, the one that is up on this machine. It returns [ErrNotUp] if there
// is none.
func Open(dir string) (*Cluster, error) {
	l, err := newLayout(resolveDir(dir))
	if err != nil {
		return nil, err
	}
	s, err := readState(l.state())
	if isAbsent(err) {
		return nil, fmt.Errorf("%w in %s", ErrNotUp, l.dir)
	}
	if err != nil {
		return nil, err
	}
	// The state says what programs to run: it must be of this user's making.
	if err := l.prepare(); err != nil {
		return nil, err
	}
	return &Cluster{layout: l, state: s}, nil
}

// resolveDir returns dir, or the directory of the cluster that is up, or the
// default.
func resolveDir(dir string) string {
	if dir != "" {
		return dir
	}
	if holder := readHolder(machineLock); holder.Dir != "" {
		return holder.Dir
	}
	return DefaultDir()
}

// Dir returns the state directory.
func (c *Cluster) Dir() string { return c.layout.dir }

// Mode returns the cluster's mode.
func (c *Cluster) Mode() Mode { return c.state.Mode }

// Kubeconfig returns the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig() }

// Server returns the API server's URL.
func (c *Cluster) Server() string { return server(c.state.Mode) }

// Bin returns the directory of the cluster's programs, kubectl among them.
func (c *Cluster) Bin() string { return filepath.Join(c.state.Binaries, "bin") }

// Logs returns the directory of the logs.
func (c *Cluster) Logs() string { return c.layout.log() }

// AuditLog returns the log of all writes to the API, see [ReadAudit].
func (c *Cluster) AuditLog() string { return c.layout.log("audit.log") }

// ProcessStatus says whether a process of the cluster runs.
type ProcessStatus struct {
	Name  string
	PID   int
	Alive bool
}

// Processes returns the cluster's processes in the order of their start.
func (c *Cluster) Processes() []ProcessStatus {
	var all []ProcessStatus
	for _, p := range c.state.Processes {
		all = append(all, ProcessStatus{Name: p.Name, PID: p.PID, Alive: p.alive()})
	}
	return all
}

// node returns the node's namespaces, and whether the cluster has a node.
func (c *Cluster) node() (namespaces, bool) {
	p, ok := c.state.find(namePause)
	return namespaces{pid: p.PID}, ok
}

// liveNode returns the node's namespaces, or why there are none.
func (c *Cluster) liveNode() (namespaces, error) {
	p, ok := c.state.find(namePause)
	if !ok {
		return namespaces{}, ErrNoNode
	}
	if !p.alive() {
		return namespaces{}, fmt.Errorf("%w: the node in %s was ended from outside; clean up with down", ErrNotUp, c.layout.dir)
	}
	return namespaces{pid: p.PID}, nil
}

// Start starts a command on the node, as command.Start does on the machine.
// The command is a process of the machine, too, but sees the node's files,
// network, host name and processes.
func (c *Cluster) Start(command *exec.Cmd) error {
	node, err := c.liveNode()
	if err != nil {
		return err
	}
	return node.start(command)
}

// LoadImage gives an image archive to the node's containerd.
func (c *Cluster) LoadImage(ctx context.Context, archive io.Reader, output io.Writer) error {
	node, err := c.liveNode()
	if err != nil {
		return err
	}
	// By standard input: what was mounted on the machine since the node
	// started is not there for the node.
	command := exec.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "import", "-")
	command.Stdin = archive
	var complaint strings.Builder
	command.Stdout = output
	command.Stderr = &complaint
	if err := node.run(command); err != nil {
		return fmt.Errorf("import an image: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// AddAddresses gives the node further addresses, out of its network
// 10.90.0.0/24, that the machine reaches: all of the prefix, 10.90.0.64/26
// say. Those that it has already are left as they are.
func (c *Cluster) AddAddresses(prefix netip.Prefix) ([]netip.Addr, error) {
	return c.changeAddresses("replace", prefix)
}

// RemoveAddresses takes those addresses of the prefix from the node that it has.
func (c *Cluster) RemoveAddresses(prefix netip.Prefix) ([]netip.Addr, error) {
	return c.changeAddresses("del", prefix)
}

func (c *Cluster) changeAddresses(verb string, prefix netip.Prefix) ([]netip.Addr, error) {
	node, err := c.liveNode()
	if err != nil {
		return nil, err
	}
	addresses, err := expand(prefix)
	if err != nil {
		return nil, err
	}
	if verb == "del" {
		present, err := node.addresses()
		if err != nil {
			return nil, err
		}
		addresses = slices.DeleteFunc(addresses, func(a netip.Addr) bool { return !slices.Contains(present, a) })
	}
	return addresses, node.changeAddresses(verb, addresses)
}

// Addresses returns the node's addresses, the one that Kubernetes knows first.
func (c *Cluster) Addresses() ([]netip.Addr, error) {
	node, err := c.liveNode()
	if err != nil {
		return nil, err
	}
	return node.addresses()
}
