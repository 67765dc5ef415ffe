package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/port"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
)

type controllerFlags struct {
	dataPlaneFlags
	kubeconfig     string
	controllerName string
	addressMode    string
	bind           []string
	pool           []string
	balancer       string
	nodeName       string
	nodeAddresses  []string
	services       bool
	elect          bool
	namespace      string
	leaseName      string
	lease          time.Duration
	report         string
	reportNode     string // the Node, whatever the addresses are
}

func controllerCmd() *cobra.Command { return new(controllerFlags).command() }

func (f *controllerFlags) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Serve the Gateway API objects of a Kubernetes cluster",
		Long: `Serve the Gateway API objects of a Kubernetes cluster.

Every replica serves; one of them, the leader, writes the status of the objects.
While the API server is out of reach, what was served last is served on.`,
		Example: `  headgate controller --kubeconfig ~/.kube/config --leader-elect=false
  headgate controller --address-pool 192.0.2.64/26
  headgate controller --address-service headgate-system/headgate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	f.add(fs)
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the API server; default: the pod's ServiceAccount, else $KUBECONFIG or ~/.kube/config")
	fs.StringVar(&f.controllerName, "controller-name", compile.ControllerName, "serve the GatewayClasses with this controllerName")
	fs.StringVar(&f.addressMode, "address-mode", "", "where Gateways that name no address listen: node (on the node's addresses), pool (each on one of its own), service (behind a Service of type LoadBalancer) or spec (nowhere); default pool with --address-pool, service with --address-service, else node")
	fs.StringSliceVar(&f.bind, "bind-address", []string{"0.0.0.0", "::"}, "addresses to listen on in the modes node and service; repeatable")
	fs.StringSliceVar(&f.pool, "address-pool", nil, "addresses for Gateways, such as 192.0.2.64/26; this host must have them; repeatable")
	fs.StringVar(&f.balancer, "address-service", "", "NAMESPACE/NAME of the Service of type LoadBalancer that leads to this process: Gateways have its addresses, and can have its ports only")
	fs.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"), "the Node that this process runs on: its addresses are reported in mode node; default $NODE_NAME")
	fs.StringVar(&f.report, "data-plane-name", "", "the name of the DataPlane object in which this process says what it serves; off for none; default: the node's name, behind a Service and outside of a cluster the host's; with a hash of --controller-name, if that is another one")
	fs.StringSliceVar(&f.nodeAddresses, "node-address", nil, "addresses to report in mode node instead of the Node's; repeatable")
	fs.BoolVar(&f.services, "gateway-services", true, "keep a Service for each Gateway, with the labels and annotations of spec.infrastructure")
	fs.BoolVar(&f.elect, "leader-elect", true, "choose one replica that writes the status; without it this process writes")
	fs.StringVar(&f.namespace, "leader-election-namespace", "", "namespace of the Lease; default: that of the pod")
	fs.BoolVar(&f.exit, "exit-after-handover", false, "drain and end when a new process has taken the sockets over; else wait for SIGTERM, ready to serve again if the new one is lost")
	fs.StringVar(&f.leaseName, "leader-election-name", "headgate-leader", "name of the Lease, by which the replicas of one installation find each other")
	fs.DurationVar(&f.lease, "leader-election-lease", 15*time.Second, "how long a leader that falls silent is waited for")
	return cmd
}

// restConfig says how to reach the API server.
func (f *controllerFlags) restConfig() (*rest.Config, error) {
	var c *rest.Config
	var err error
	if f.kubeconfig == "" {
		c, err = rest.InClusterConfig()
	}
	if c == nil {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = f.kubeconfig
		c, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	c.UserAgent = "headgate/" + version
	// The status writer bounds and paces its own requests.
	c.QPS = -1
	return c, nil
}

// compileOptions are what the cluster mode tells the compiler. api is the host of
// the API server.
func (f *controllerFlags) compileOptions(api string) (compile.Options, error) {
	o := compile.Options{ControllerName: f.controllerName}
	if f.services {
		o.Features = []string{string(features.SupportGatewayInfrastructure)}
	}
	if f.addressMode == "" {
		switch {
		case f.balancer != "":
			f.addressMode = "service"
		case len(f.pool) > 0:
			f.addressMode = "pool"
		default:
			f.addressMode = "node"
		}
	}
	if f.balancer != "" && f.addressMode != "service" {
		return o, fmt.Errorf("--address-service goes with --address-mode service, not %s", f.addressMode)
	}
	if len(f.pool) > 0 && f.addressMode == "service" {
		return o, errors.New("--address-pool does not go with --address-service: behind a Service a Gateway has no address of its own; leave one of them out")
	}
	var err error
	switch f.addressMode {
	case "spec":
	case "pool":
		if o.Addresses.Pool, err = parsePrefixes("--address-pool", f.pool); err == nil && len(o.Addresses.Pool) == 0 {
			err = errors.New("--address-mode pool needs --address-pool")
		}
	case "service":
		namespace, name, ok := strings.Cut(f.balancer, "/")
		if !ok || namespace == "" || name == "" {
			return o, fmt.Errorf("--address-mode service needs --address-service NAMESPACE/NAME, not %q", f.balancer)
		}
		bind, berr := compileOptions(f.bind)
		if berr != nil {
			return o, berr
		}
		o.Addresses.Bind = bind.Addresses.Bind
		o.Addresses.Service = types.NamespacedName{Namespace: namespace, Name: name}
	case "node":
		bind, berr := compileOptions(f.bind)
		if berr != nil {
			return o, berr
		}
		o.Addresses.Bind = bind.Addresses.Bind
		if len(f.nodeAddresses) > 0 {
			f.nodeName = ""
		}
		for _, s := range f.nodeAddresses {
			a, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return o, fmt.Errorf("--node-address %q: use an IP address", s)
			}
			o.Addresses.Node = append(o.Addresses.Node, a)
		}
		if len(o.Addresses.Node) == 0 && f.nodeName == "" {
			o.Addresses.Node = localAddresses(api)
		}
	default:
		err = fmt.Errorf("--address-mode %q: use node, pool, service or spec", f.addressMode)
	}
	if f.addressMode != "node" {
		f.nodeName = ""
	}
	return o, err
}

// localAddresses are the addresses of this host: the one that it has towards the
// API server, or all when that is itself.
func localAddresses(api string) []netip.Addr {
	if u, err := url.Parse(api); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = "443"
		}
		// Nothing is sent: only the route is looked up.
		if c, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), port)); err == nil {
			local, perr := netip.ParseAddrPort(c.LocalAddr().String())
			c.Close()
			if perr == nil && !local.Addr().IsLoopback() {
				return []netip.Addr{local.Addr().Unmap()}
			}
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

// election says who writes the status.
func (f *controllerFlags) election() (controllers.Election, error) {
	if !f.elect {
		return controllers.Election{}, nil
	}
	if f.leaseName == "" {
		return controllers.Election{}, errors.New("--leader-election-name: name the Lease, or use --leader-elect=false")
	}
	if f.namespace == "" {
		const file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
		text, err := os.ReadFile(file)
		if err != nil {
			return controllers.Election{}, errors.New("--leader-election-namespace: name one, since this is not a pod; or use --leader-elect=false")
		}
		f.namespace = strings.TrimSpace(string(text))
	}
	host, err := os.Hostname()
	if err != nil {
		return controllers.Election{}, fmt.Errorf("this host has no name: %w", err)
	}
	return controllers.Election{
		Namespace: f.namespace, Name: f.leaseName, Lease: f.lease,
		// A host may run two of us, and a pid comes back.
		Identity: fmt.Sprintf("%s_%d_%x", host, os.Getpid(), time.Now().UnixNano()),
	}, nil
}

// dataPlaneName is the name of the DataPlane object of this process; "" for none.
// There may be several pods on a node where they are behind a Service, and several
// releases, which differ in the controller name.
func (f *controllerFlags) dataPlaneName() (string, error) {
	own := ""
	if f.controllerName != "" && f.controllerName != compile.ControllerName {
		sum := sha256.Sum256([]byte(f.controllerName))
		own = "-" + hex.EncodeToString(sum[:4])
	}
	switch {
	case f.report == "off":
		return "", nil
	case f.report != "":
	case f.reportNode != "" && f.addressMode != "service":
		return f.reportNode + own, nil
	default:
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("--data-plane-name: name one, or use off: %w", err)
		}
		return strings.ToLower(host) + own, nil
	}
	if faults := validation.IsDNS1123Subdomain(f.report); len(faults) > 0 {
		return "", fmt.Errorf("--data-plane-name %q: %s", f.report, strings.Join(faults, "; "))
	}
	return f.report, nil
}

func (f *controllerFlags) run(ctx context.Context) error {
	f.reportNode = f.nodeName
	config, err := f.restConfig()
	if err != nil {
		return err
	}
	opts, err := f.compileOptions(config.Host)
	if err != nil {
		return err
	}
	election, err := f.election()
	if err != nil {
		return err
	}
	report, err := f.dataPlaneName()
	if err != nil {
		return err
	}
	var m *controllers.Manager
	first := func(ctx context.Context, log *zap.Logger) ir.Process {
		return controllers.AskProcess(ctx, config, opts, log)
	}
	p, err := f.start(ctx, first, func() error {
		select {
		case <-m.Loop().Ready():
			return nil
		default:
			return errors.New("the objects of the cluster are not known yet, or their first configuration is not applied")
		}
	}, func(server *dataplane.Server, log *zap.Logger) (err error) {
		klog.SetLogger(newLogr(log))
		ctrllog.SetLogger(newLogr(log))
		m, err = controllers.NewManager(controllers.ManagerOptions{
			Config: config, DataPlane: newSettling(server, giveBack), Compile: opts, NodeName: f.nodeName,
			Services: f.services, Election: election, Ports: port.New(port.Options{}), Logger: log,
			Report: controllers.ReportOptions{Name: report, NodeName: f.reportNode, Version: version, Stats: sampler{server}},
		})
		return err
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(run) }()
	select {
	case <-m.Loop().Ready():
		p.serving(ctx)
		p.log.Info("serving", zap.String("cluster", config.Host), zap.Strings("listeners", describe(m.Loop().State().Snapshot)))
		p.wait(ctx)
	case <-ctx.Done():
	case err := <-ended:
		return errors.Join(err, p.stop())
	}
	stop()
	err = <-ended
	return errors.Join(err, p.stop())
}
