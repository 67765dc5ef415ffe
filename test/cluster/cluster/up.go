package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// Up starts a cluster and returns when it is ready. It needs the machine's
// lock: while another cluster is up it returns a [HeldError]. What an earlier
// cluster left behind that has crashed is removed first. When it fails, or ctx
// ends, all that it has started is ended again.
func Up(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o, err = o.complete(); err != nil {
		return nil, err
	}
	if o.Mode == Node {
		if err := CheckMachine(); err != nil {
			return nil, err
		}
	}
	if err := checkBinaries(o.Binaries, o.Mode); err != nil {
		return nil, err
	}
	l, err := newLayout(o.Dir)
	if err != nil {
		return nil, err
	}
	// First the machine's lock, before anything of anyone's is touched.
	earlier := readHolder(machineLock)
	machine, err := acquire(machineLock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, machine.close()) }() // the programs hold it on
	if err := l.prepare(); err != nil {
		return nil, err
	}
	operation, err := operate(l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, operation.close()) }()
	if err := removeLeftovers(l, earlier, machine, o.Output); err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	holder := Holder{PID: os.Getpid(), Dir: l.dir, Mode: o.Mode, Since: now}
	if err := machine.describe(holder); err != nil {
		return nil, err
	}
	c := &Cluster{layout: l, state: &state{Mode: o.Mode, Boot: boot, Since: now, Binaries: o.Binaries}}
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s := starter{Cluster: c, options: o, lock: machine, start: now}
	if err := s.run(limited); err != nil {
		return nil, errors.Join(err, end(l, machine))
	}
	// From now on it is not this process that keeps the lock held.
	holder.PID = c.state.Processes[0].PID
	if err := machine.describe(holder); err != nil {
		return nil, errors.Join(err, end(l, machine))
	}
	return c, nil
}

// operate makes this process the only one that works on a state directory.
func operate(l layout) (*lock, error) {
	operation, err := acquire(l.operationLock())
	if err != nil {
		if held := new(HeldError); errors.As(err, &held) {
			return nil, fmt.Errorf("another command (pid %d) is at work on %s: wait for it, or end it", held.Holder.PID, l.dir)
		}
		return nil, err
	}
	holder := Holder{PID: os.Getpid(), Dir: l.dir, Since: time.Now()}
	if err := operation.describe(holder); err != nil {
		return nil, errors.Join(err, operation.close())
	}
	return operation, nil
}

// removeLeftovers removes what crashed clusters have left in the state
// directory l and in the one of the earlier holder of the machine's lock.
func removeLeftovers(l layout, earlier Holder, machine *lock, output io.Writer) error {
	if earlier.Dir != "" && earlier.Dir != l.dir {
		other := layout{dir: earlier.Dir}
		if exists(other.state()) && other.prepare() == nil {
			fmt.Fprintf(output, "removing what a crashed cluster left in %s\n", other.dir)
			if err := end(other, machine); err != nil {
				return err
			}
		}
	}
	if exists(l.state()) {
		fmt.Fprintf(output, "removing what a crashed cluster left in %s\n", l.dir)
	}
	return end(l, machine)
}

// starter starts the programs of a cluster, one after the other.
type starter struct {
	*Cluster
	options Options
	lock    *lock
	start   time.Time
	api     *client
}

// say says what is ready, and since when.
func (s *starter) say(what string) {
	fmt.Fprintf(s.options.Output, "%6.1fs  %s\n", time.Since(s.start).Seconds(), what)
}

func (s *starter) run(ctx context.Context) error {
	// Logs of the last run are kept until now.
	if err := os.RemoveAll(s.layout.log()); err != nil {
		return fmt.Errorf("remove old logs: %w", err)
	}
	for _, dir := range []string{s.layout.log(), s.layout.run()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("fill the state directory: %w", err)
		}
	}
	if err := s.state.write(s.layout.state()); err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	var err error
	if s.api, err = newAPIClient(s.layout, s.options.Mode); err != nil {
		return err
	}
	defer s.api.close()
	if s.options.Mode == Node {
		if err := s.makeNode(); err != nil {
			return err
		}
		s.say("namespaces, cgroups and network")
	} else {
		for _, port := range []int{etcdPort, etcdPeerPort, apiServerPort, controllerManagerPort, schedulerPort} {
			if err := portFree(port); err != nil {
				return err
			}
		}
	}
	calls := programs{layout: s.layout, mode: s.options.Mode, bin: s.Bin()}
	if s.options.Mode == ControlPlane {
		if err := s.startControlPlane(ctx, calls); err != nil {
			return err
		}
		s.say("ready")
		return nil
	}
	// It starts while the control plane does.
	containerd, err := s.launch(calls.containerd(), nil, nil)
	if err != nil {
		return err
	}
	if err := s.startControlPlane(ctx, calls); err != nil {
		return err
	}
	if err := s.startNode(ctx, calls, containerd); err != nil {
		return err
	}
	s.say("ready")
	return nil
}

func (s *starter) writeFiles() error {
	if err := writeCredentials(s.layout, s.options.Mode, s.start); err != nil {
		return err
	}
	policy, err := configFiles.ReadFile("config/audit-policy.yaml")
	if err != nil {
		return fmt.Errorf("read the audit policy: %w", err)
	}
	if err := os.WriteFile(s.layout.run("audit-policy.yaml"), policy, 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	if s.options.Mode == ControlPlane {
		return nil
	}
	return newNodeConfig(s.layout, s.options.Proxy, binaries.PauseImage).write(s.layout)
}

// makeNode makes the node's namespaces, mounts, cgroups and network.
func (s *starter) makeNode() error {
	if err := checkNetwork(); err != nil {
		return err
	}
	s.state.Made = missingPlaces()
	if err := s.state.write(s.layout.state()); err != nil {
		return err
	}
	if err := makePlaces(s.state.Made); err != nil {
		return err
	}
	if err := makeCgroups(); err != nil {
		return err
	}
	calls := programs{layout: s.layout, mode: s.options.Mode, bin: s.Bin()}
	if _, err := s.launch(calls.pause(), s.lock, newNamespaces()); err != nil {
		return err
	}
	node, _ := s.node()
	if err := node.furnish(s.layout.run("sysctls")); err != nil {
		return err
	}
	if err := joinNetwork(node); err != nil {
		return err
	}
	for _, prefix := range s.options.Addresses {
		if _, err := s.AddAddresses(prefix); err != nil {
			return err
		}
	}
	return nil
}

func (s *starter) startControlPlane(ctx context.Context, calls programs) error {
	etcd, err := s.launch(calls.etcd(), s.lock, nil)
	if err != nil {
		return err
	}
	if err := etcd.await(ctx, "etcd", s.health("http", etcdPort, "/readyz")); err != nil {
		return err
	}
	s.say("etcd")
	apiServer, err := s.launch(calls.apiServer(), s.lock, nil)
	if err != nil {
		return err
	}
	if err := apiServer.await(ctx, "the API server", s.api.ready); err != nil {
		return err
	}
	s.say("kube-apiserver")
	// Only now: before its roles are there, the API server refuses them.
	manager, err := s.launch(calls.controllerManager(), s.lock, nil)
	if err != nil {
		return err
	}
	scheduler, err := s.launch(calls.scheduler(), s.lock, nil)
	if err != nil {
		return err
	}
	if err := manager.await(ctx, "the controller manager", s.health("https", controllerManagerPort, "/healthz")); err != nil {
		return err
	}
	if err := scheduler.await(ctx, "the scheduler", s.health("https", schedulerPort, "/healthz")); err != nil {
		return err
	}
	s.say("kube-controller-manager, kube-scheduler")
	// Pods need it, and it comes a moment after the controller manager.
	return manager.await(ctx, "the ServiceAccount of the namespace default", func(ctx context.Context) error {
		return s.api.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
}

func (s *starter) startNode(ctx context.Context, calls programs, containerd *daemon) error {
	node, err := s.liveNode()
	if err != nil {
		return err
	}
	err = containerd.await(ctx, "containerd", func(ctx context.Context) error {
		out, err := node.combined(exec.CommandContext(ctx, "ctr", "version"))
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, path := range append([]string{filepath.Join(s.options.Binaries, binaries.PauseArchive)}, s.options.Images...) {
		if err := s.loadFile(ctx, path); err != nil {
			return err
		}
	}
	s.say("containerd and its images")
	kubelet, err := s.launch(calls.kubelet(), nil, nil)
	if err != nil {
		return err
	}
	if _, err := s.launch(calls.proxy(), nil, nil); err != nil {
		return err
	}
	return kubelet.await(ctx, "the node", s.api.nodeReady)
}

func (s *starter) loadFile(ctx context.Context, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open an image: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := s.LoadImage(ctx, file, io.Discard); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// health returns a probe of a program's health port, which is on the loopback
// address of wherever the program runs.
func (c *Cluster) health(scheme string, port int, path string) func(context.Context) error {
	dial := new(net.Dialer).DialContext
	if node, ok := c.node(); ok {
		dial = node.dial
	}
	probe := newHealthClient(fmt.Sprintf("%s://127.0.0.1:%d", scheme, port), dial)
	return func(ctx context.Context) error { return probe.get(ctx, path, nil) }
}
