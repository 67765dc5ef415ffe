package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/test/cluster/binaries"
	"github.com/headgate/headgate/test/cluster/cluster"
)

// The node's addresses for Gateways, and the two that the suite asks for by
// name: one that the node has, and one that it has not.
const (
	pool     = "10.90.0.64/26"
	usable   = "10.90.0.120"
	unusable = "192.0.2.1"
)

// run does everything and ends all that it started.
func run(ctx context.Context, o options) (total result, err error) {
	if os.Geteuid() != 0 {
		return total, errors.New("a node needs root: network namespaces, mounts and containers")
	}
	p, err := findPaths()
	if err != nil {
		return total, err
	}
	if _, err := os.Stat(p.helm()); err != nil {
		return total, errors.New("helm is not built; run: make bin/helm")
	}
	if o.version == "" {
		if o.version, err = p.gitVersion(ctx); err != nil {
			return total, err
		}
	}
	fmt.Println("== building")
	built, err := p.build(ctx, o.version)
	if err != nil {
		return total, err
	}
	cache, err := binaries.OpenDefault(ctx)
	if err != nil {
		return total, err
	}
	if err := cache.Build(ctx, binaries.All()[0], os.Stderr); err != nil {
		return total, err
	}
	fmt.Println("== starting a cluster")
	c, err := cluster.Up(ctx, cluster.Options{
		Mode: cluster.Node, Binaries: cache.Dir(), Images: built.images,
		Addresses: []netip.Prefix{netip.MustParsePrefix(pool)}, Output: os.Stderr,
	})
	if err != nil {
		return total, err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, c.Down()) }()
	}
	if err := c.ApplyCRDs(ctx, "gateway-api-experimental", quiet(o)); err != nil {
		return total, err
	}
	h, err := startController(ctx, c, p, built)
	if err != nil {
		return total, err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, h.stop()) }()
	}
	for i := range o.runs {
		if i > 0 {
			if err := (kubectl{c}).vacant(ctx); err != nil {
				return total, err
			}
		}
		fmt.Printf("== run %d of %d\n", i+1, o.runs)
		r, err := p.suite(ctx, c, built.suite, o)
		total.add(r)
		if err != nil {
			return total, err
		}
		if err := h.alive(ctx); err != nil {
			return total, err
		}
	}
	return total, nil
}

// paths are the directories of this module and of the repository.
type paths struct {
	module, repository string
}

// helm is the program that installs the chart.
func (p paths) helm() string { return filepath.Join(p.repository, "bin", "helm") }

func findPaths() (paths, error) {
	module, err := os.Getwd()
	if err != nil {
		return paths{}, err
	}
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module github.com/headgate/headgate/test/conformance") {
		return paths{}, errors.New("run this from test/conformance")
	}
	return paths{module: module, repository: filepath.Dir(filepath.Dir(module))}, nil
}
