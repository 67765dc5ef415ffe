package cluster

import (
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"
)

// Mode says how much of a cluster is run.
type Mode string

const (
	// ControlPlane is etcd, API server, controller manager and scheduler on
	// loopback. It needs no root.
	ControlPlane Mode = "cp"
	// Node is the same with containerd, kubelet and kube-proxy, all in
	// namespaces of their own. It needs root and Debian's packages.
	Node Mode = "node"
)

// Proxy is the mode of kube-proxy.
type Proxy string

const (
	// NFTables is the default.
	NFTables Proxy = "nftables"
	// IPTables is what most clusters still have.
	IPTables Proxy = "iptables"
)

// Addresses and names that are the same in every cluster. Only one is up at a
// time, and clients' configuration may name them.
const (
	nodeName       = "node1"
	hostLink       = "hgtest0" // the machine's end of the veth pair
	nodeLink       = "eth0"    // the node's end
	hostAddress    = "10.90.0.1"
	nodeAddress    = "10.90.0.2"
	nodePrefix     = "10.90.0.0/24"
	podCIDR        = "10.244.0.0/24" // of the one node
	clusterCIDR    = "10.244.0.0/16"
	serviceCIDR    = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes
	dnsAddress     = "10.96.0.10"
	cgroupName     = "headgate-test"

	apiServerPort         = 16443
	etcdPort              = 12379
	etcdPeerPort          = 12380
	controllerManagerPort = 20257
	schedulerPort         = 20259
)

// NodeName is the name of the one node.
const NodeName = nodeName

// DefaultTimeout is how long [Up] waits for a cluster unless told otherwise.
const DefaultTimeout = 3 * time.Minute

// Options are the options of [Up].
type Options struct {
	Mode Mode

	// Dir is the state directory. It is made if need be, and must be empty or
	// have been a state directory before. Default: DefaultDir.
	Dir string

	// Binaries is a directory as package binaries makes one: programs in bin,
	// the pause image in images. Required.
	Binaries string

	// Images are archives that the node's containerd is given before the
	// kubelet starts.
	Images []string

	// Addresses are further addresses of the node, for Gateways; see
	// [Cluster.AddAddresses].
	Addresses []netip.Prefix

	// Proxy is kube-proxy's mode. Default: NFTables.
	Proxy Proxy

	// Timeout is how long to wait until everything is ready. Default:
	// DefaultTimeout.
	Timeout time.Duration

	// Output is where progress is said. Default: nowhere.
	Output io.Writer
}

// complete fills in defaults and checks the rest.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		o.Dir = DefaultDir()
	}
	if o.Proxy == "" {
		o.Proxy = NFTables
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	switch {
	case o.Mode != ControlPlane && o.Mode != Node:
		return o, fmt.Errorf("mode %q is neither %s nor %s", o.Mode, ControlPlane, Node)
	case o.Binaries == "":
		return o, fmt.Errorf("the directory of the binaries is not given")
	case o.Proxy != NFTables && o.Proxy != IPTables:
		return o, fmt.Errorf("proxy mode %q is neither %s nor %s", o.Proxy, NFTables, IPTables)
	case o.Timeout < 0:
		return o, fmt.Errorf("time-out %s is negative", o.Timeout)
	case o.Mode == ControlPlane && len(o.Images) > 0:
		return o, fmt.Errorf("images need a node: mode %s has none", ControlPlane)
	case o.Mode == ControlPlane && len(o.Addresses) > 0:
		return o, fmt.Errorf("addresses need a node: mode %s has none", ControlPlane)
	}
	binaries, err := filepath.Abs(o.Binaries)
	if err != nil {
		return o, fmt.Errorf("directory of the binaries: %w", err)
	}
	o.Binaries = binaries
	for _, prefix := range o.Addresses {
		if _, err := expand(prefix); err != nil {
			return o, err
		}
	}
	return o, nil
}
