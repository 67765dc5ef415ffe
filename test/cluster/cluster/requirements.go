package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/test/cluster/binaries"
)

// ErrNotRoot tells that a node was asked for by another user than root.
var ErrNotRoot = errors.New("a node needs root: it makes namespaces, cgroups and a network link (mode cp does not)")

// requirements are the programs that a node needs of the machine, and the
// Debian packages that have them. A name without a slash is looked for in PATH.
var requirements = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"/usr/lib/cni/host-local", "containernetworking-plugins"},
	{"/usr/lib/cni/loopback", "containernetworking-plugins"},
	{"/usr/lib/cni/portmap", "containernetworking-plugins"},
	{"iptables", "iptables"}, // portmap's
	{"nft", "nftables"},      // kube-proxy's
	{"ip", "iproute2"},
	{"mount", "mount"},
}

// MissingError tells what a cluster needs and the machine lacks.
type MissingError struct {
	Programs []string
	Packages []string // Debian's, which have them
	Binaries []string // of our own, which were not built
}

// Error implements error.
func (e *MissingError) Error() string {
	if len(e.Binaries) > 0 {
		return fmt.Sprintf("the cluster's programs are not built (%s is missing): build them first; it takes about 12 minutes the first time", e.Binaries[0])
	}
	return fmt.Sprintf("this machine lacks %s; install what has them:\n  apt-get update && apt-get install -y --no-install-recommends %s",
		strings.Join(e.Programs, ", "), strings.Join(e.Packages, " "))
}

// CheckMachine tells what keeps this machine from running a node: a
// [MissingError] or [ErrNotRoot].
func CheckMachine() error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	return missingPrograms(exec.LookPath)
}

// missingPrograms tells which of requirements the machine lacks.
func missingPrograms(look func(program string) (string, error)) error {
	var missing MissingError
	for _, r := range requirements {
		if _, err := look(r.program); err == nil {
			continue
		}
		missing.Programs = append(missing.Programs, r.program)
		if !slices.Contains(missing.Packages, r.pkg) {
			missing.Packages = append(missing.Packages, r.pkg)
		}
	}
	if len(missing.Programs) > 0 {
		return &missing
	}
	return nil
}

// Install installs the packages that a [MissingError] names. It changes the
// machine, for good.
func Install(ctx context.Context, missing *MissingError, output io.Writer) error {
	if len(missing.Packages) == 0 {
		return nil
	}
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-y", "-q", "--no-install-recommends"}, missing.Packages...),
	} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		command.Stdout = output
		command.Stderr = output
		if err := command.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}

// checkBinaries tells what was not built of what a mode needs.
func checkBinaries(dir string, mode Mode) error {
	paths := []string{"bin/etcd", "bin/kube-apiserver", "bin/kube-controller-manager", "bin/kube-scheduler", "bin/kubectl"}
	if mode == Node {
		paths = append(paths, "bin/kubelet", "bin/kube-proxy", "bin/pause", binaries.PauseArchive)
	}
	var missing MissingError
	for _, path := range paths {
		if full := filepath.Join(dir, path); !exists(full) {
			missing.Binaries = append(missing.Binaries, full)
		}
	}
	if len(missing.Binaries) > 0 {
		return &missing
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
