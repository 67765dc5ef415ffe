package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/test/cluster/image"
)

// built is what the run needs.
type built struct {
	tag    string // of Headgate's image
	suite  string
	images []string
}

// headgateImage is the name of Headgate's image, as in the chart.
const headgateImage = "ghcr.io/headgate/headgate"

// backendImages are the names by which the suite's manifests know its backend.
// One program is all of them.
var backendImages = []string{
	"registry.k8s.io/gateway-api/echo-basic:v1.5.1",
	"registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.2",
	"registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.3",
}

// dnsImage is the backend of the tests of UDP. It must run, whatever is tested.
const dnsImage = "registry.k8s.io/coredns/coredns:v1.12.2"

// build builds all programs. The go command knows what is built already.
func (p paths) build(ctx context.Context, version string) (built, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return built{}, err
	}
	dir := filepath.Join(cache, "headgate-test", "conformance")
	b := built{tag: "conformance", suite: filepath.Join(dir, "suite.test")}
	// The files of the released image, made anew: with the program's capability.
	headgate := filepath.Join(dir, "image")
	if err := os.RemoveAll(headgate); err != nil {
		return b, err
	}
	echo, dns := filepath.Join(dir, "echo", "echo-basic"), filepath.Join(dir, "dns", "coredns")
	for _, args := range [][]string{
		{filepath.Join(p.repository, "test", "image"), "run", ".", "-root", headgate, "-version", version},
		{p.module, "build", "-ldflags", "-s -w", "-o", echo, "sigs.k8s.io/gateway-api/conformance/echo-basic"},
		{filepath.Join(p.module, "coredns"), "build", "-ldflags", "-s -w", "-o", dns, "."},
		{p.module, "test", "-c", "-o", b.suite, "."},
	} {
		c := exec.CommandContext(ctx, "go", args[1], "-buildvcs=false")
		c.Args = append(c.Args, args[2:]...)
		c.Dir = args[0]
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		if err := c.Run(); err != nil {
			return b, fmt.Errorf("go %s: %w", strings.Join(args[1:], " "), err)
		}
	}
	for _, spec := range []image.Spec{
		{Names: backendImages, Root: filepath.Dir(echo), Entrypoint: []string{"/echo-basic"}},
		{Names: []string{headgateImage + ":" + b.tag}, Root: headgate, Entrypoint: []string{"/headgate"}},
		{Names: []string{dnsImage}, Root: filepath.Dir(dns), Entrypoint: []string{"/coredns"}},
	} {
		out := spec.Root + ".tar"
		if err := image.Write(out, spec); err != nil {
			return b, err
		}
		b.images = append(b.images, out)
	}
	return b, nil
}

// gitVersion is the version of the working tree.
func (p paths) gitVersion(ctx context.Context) (string, error) {
	c := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "describe", "--tags", "--always", "--dirty")
	c.Dir = p.repository
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w; use -version", err)
	}
	return strings.TrimSpace(string(out)), nil
}
