package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// joinNetwork joins the machine and the node by a pair of links, and leads the
// pods' and Services' addresses to the node.
func joinNetwork(n namespaces) error {
	batch := func(lines ...string) *exec.Cmd {
		command := exec.Command("ip", "-batch", "-")
		command.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		return command
	}
	outside := func(lines ...string) error {
		if out, err := batch(lines...).CombinedOutput(); err != nil {
			return fmt.Errorf("join the node's network: %w: %s", err, out)
		}
		return nil
	}
	inside := func(lines ...string) error {
		if out, err := n.combined(batch(lines...)); err != nil {
			return fmt.Errorf("set up the node's network: %w: %s", err, out)
		}
		return nil
	}
	prefix := netip.MustParsePrefix(nodePrefix).Bits()
	if err := outside(
		fmt.Sprintf("link add %s type veth peer name %s netns %d", hostLink, nodeLink, n.pid),
		fmt.Sprintf("address add %s/%d dev %s", hostAddress, prefix, hostLink),
		fmt.Sprintf("link set %s up", hostLink),
	); err != nil {
		return err
	}
	if err := inside(
		"link set lo up",
		fmt.Sprintf("address add %s/%d dev %s", nodeAddress, prefix, nodeLink),
		fmt.Sprintf("link set %s up", nodeLink),
		fmt.Sprintf("route add default via %s", hostAddress),
	); err != nil {
		return err
	}
	// "add" fails where the machine has such a route already: it is not ours to change.
	if err := outside(
		fmt.Sprintf("route add %s via %s", podCIDR, nodeAddress),
		fmt.Sprintf("route add %s via %s", serviceCIDR, nodeAddress),
	); err != nil {
		return err
	}
	return n.do(func() error {
		// The kernel takes the network namespace of the thread that opens it.
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0)
	})
}

// partNetwork removes the machine's end of the pair, and with it the other end
// and the routes.
func partNetwork() error {
	if _, err := net.InterfaceByName(hostLink); err != nil {
		return nil
	}
	out, err := exec.Command("ip", "link", "del", hostLink).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "Cannot find device") { // it went with its namespace meanwhile
		return fmt.Errorf("remove the link %s: %w: %s", hostLink, err, out)
	}
	return nil
}

// checkNetwork tells what on this machine is in the way of a node's network.
func checkNetwork() error {
	ours := []netip.Prefix{netip.MustParsePrefix(nodePrefix), netip.MustParsePrefix(clusterCIDR), netip.MustParsePrefix(serviceCIDR)}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list the links: %w", err)
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			for _, our := range ours {
				if our.Overlaps(prefix.Masked()) {
					return fmt.Errorf("this machine has %s on %s, which a node needs for itself (%s)", prefix, link.Name, our)
				}
			}
		}
	}
	return nil
}

// expand returns the addresses of prefix that the node may have besides its
// own, or why it can't have them.
func expand(prefix netip.Prefix) ([]netip.Addr, error) {
	network := netip.MustParsePrefix(nodePrefix)
	if !prefix.IsValid() || prefix.Bits() < network.Bits() || !network.Contains(prefix.Addr()) {
		return nil, fmt.Errorf("%s is not in the node's network %s", prefix, network)
	}
	last := network.Addr().As4()
	last[3] = 255
	taken := []netip.Addr{
		network.Addr(), netip.AddrFrom4(last), // network and broadcast
		netip.MustParseAddr(hostAddress), netip.MustParseAddr(nodeAddress),
	}
	prefix = prefix.Masked()
	var addresses []netip.Addr
	for a := prefix.Addr(); prefix.Contains(a); a = a.Next() {
		if slices.Contains(taken, a) {
			return nil, fmt.Errorf("%s has %s in it, which is taken: free are 10.90.0.3 to 10.90.0.254", prefix, a)
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

// changeAddresses adds ("replace", which also takes those that are there) or
// deletes ("del") addresses of the node.
func (n namespaces) changeAddresses(verb string, addresses []netip.Addr) error {
	var batch strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&batch, "address %s %s/32 dev %s\n", verb, a, nodeLink)
	}
	command := exec.Command("ip", "-batch", "-")
	command.Stdin = strings.NewReader(batch.String())
	if out, err := n.combined(command); err != nil {
		return fmt.Errorf("change the node's addresses: %w: %s", err, out)
	}
	return nil
}

// addresses returns the IPv4 addresses of the node's link, its own first.
func (n namespaces) addresses() ([]netip.Addr, error) {
	var addresses []netip.Addr
	err := n.do(func() error {
		link, err := net.InterfaceByName(nodeLink)
		if err != nil {
			return err
		}
		listed, err := link.Addrs()
		if err != nil {
			return err
		}
		for _, a := range listed {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
				addresses = append(addresses, prefix.Addr())
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the node's addresses: %w", err)
	}
	return addresses, nil
}

// portFree tells whether a port of the loopback address can be listened on.
func portFree(port int) error {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)).String())
	if err != nil {
		return fmt.Errorf("port %d is taken by another program: %w", port, err)
	}
	return errors.Join(listener.Close())
}
