package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"

	"github.com/headgate/headgate/test/cluster/binaries"
	"github.com/headgate/headgate/test/cluster/cluster"
)

// up starts a cluster.
func (a *app) up(ctx context.Context, args []string) error {
	o := cluster.Options{Output: a.stderr}
	install := false
	proxy := ""
	rest, dir, err := parse(args, func(flags *flag.FlagSet) {
		flags.BoolVar(&install, "install", false, "install the Debian packages that are missing")
		flags.StringVar(&proxy, "proxy", "", "kube-proxy's mode: nftables or iptables")
		flags.DurationVar(&o.Timeout, "timeout", cluster.DefaultTimeout, "how long to wait until it is ready")
		flags.Func("image", "image archive to load", func(path string) error {
			o.Images = append(o.Images, path)
			return nil
		})
		flags.Func("addresses", "further addresses of the node", func(text string) error {
			prefix, err := parsePrefix(text)
			o.Addresses = append(o.Addresses, prefix)
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usagef("say which: cp or node")
	}
	o.Mode, o.Dir, o.Proxy = cluster.Mode(rest[0]), dir, cluster.Proxy(proxy)
	if o.Mode != cluster.ControlPlane && o.Mode != cluster.Node {
		return usagef("%q is neither cp nor node", rest[0])
	}
	cache, err := binaries.OpenDefault(ctx)
	if err != nil {
		return err
	}
	o.Binaries = cache.Dir()
	if install && o.Mode == cluster.Node {
		missing := new(cluster.MissingError)
		if err := cluster.CheckMachine(); errors.As(err, &missing) {
			if err := cluster.Install(ctx, missing, a.stderr); err != nil {
				return err
			}
		}
	}
	c, err := cluster.Up(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "export KUBECONFIG=%s\nexport KUBEBUILDER_ASSETS=%s\n", quote(c.Kubeconfig()), quote(c.Bin()))
	fmt.Fprintf(a.stderr, "state and logs: %s; end it with: down\n", c.Dir())
	return nil
}

// down ends a cluster.
func (a *app) down(_ context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("no arguments")
	}
	found, err := cluster.Down(dir)
	if err != nil {
		return err
	}
	if !found {
		fmt.Fprintln(a.stderr, "nothing was up")
		return nil
	}
	fmt.Fprintln(a.stderr, "down")
	return nil
}

// status says what is up.
func (a *app) status(_ context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("no arguments")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "mode       %s\ndirectory  %s\nlogs       %s\nserver     %s\nkubeconfig %s\n", c.Mode(), c.Dir(), c.Logs(), c.Server(), c.Kubeconfig())
	for _, p := range c.Processes() {
		state := "runs"
		if !p.Alive {
			state = "has ended"
		}
		fmt.Fprintf(a.stdout, "  %-24s pid %-7d %s\n", p.Name, p.PID, state)
	}
	return nil
}

// kubeconfig prints where the kubeconfig is.
func (a *app) kubeconfig(_ context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("no arguments")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, c.Kubeconfig())
	return nil
}

// parsePrefix parses 10.90.0.64/26, or 10.90.0.64 for that address alone.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
