package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// privatePlaces are directories of the machine that the node's programs write
// to whatever they are told. The node has an empty one of its own in each place.
var privatePlaces = []string{
	"/run/containerd",     // sockets; the machine may have a containerd of its own
	"/run/netns",          // the pods' network namespaces
	"/var/lib/cni",        // results of the CNI plugins
	"/var/lib/kubelet",    // device plugins, whatever kubelet's --root-dir says
	"/var/log/containers", // links to the pods' logs
	"/var/log/pods",
}

// sysctls are settings of the whole machine, below /proc/sys, that the kubelet
// wants. The node shows it these files in their place, so that it is content
// and the machine stays as it is.
var sysctls = []struct{ name, value string }{
	{"vm/overcommit_memory", "1"},
	{"vm/panic_on_oom", "0"},
	{"kernel/panic", "10"},
	{"kernel/panic_on_oops", "1"},
	{"kernel/keys/root_maxkeys", "1000000"},
	{"kernel/keys/root_maxbytes", "25000000"},
}

// missingPlaces returns those of privatePlaces, and of the directories above
// them, that the machine lacks, parents first.
func missingPlaces() []string {
	var missing []string
	for _, place := range privatePlaces {
		var chain []string
		for at := place; at != "/"; at = filepath.Dir(at) {
			if _, err := os.Stat(at); err == nil {
				break
			}
			chain = append([]string{at}, chain...)
		}
		missing = append(missing, chain...)
	}
	return missing
}

// makePlaces makes the directories; those that exist are left alone.
func makePlaces(places []string) error {
	for _, place := range places {
		if err := os.Mkdir(place, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make a place to mount on: %w", err)
		}
	}
	return nil
}

// removePlaces removes those of the directories that are empty, children first.
func removePlaces(places []string) error {
	for i := len(places) - 1; i >= 0; i-- {
		err := os.Remove(places[i])
		if err != nil && !isAbsent(err) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("remove a place to mount on: %w", err)
		}
	}
	return nil
}

// furnish makes the mount namespace of n the node's own: what is mounted in it
// never shows outside. fake is the directory of the files that stand in for
// sysctls.
func (n namespaces) furnish(fake string) error {
	if err := os.MkdirAll(fake, 0o700); err != nil {
		return fmt.Errorf("make the node's sysctls: %w", err)
	}
	for _, s := range sysctls {
		if err := os.WriteFile(fakeFile(fake, s.name), []byte(s.value+"\n"), 0o600); err != nil {
			return fmt.Errorf("make the node's sysctls: %w", err)
		}
	}
	err := n.do(func() error {
		// First private, which cuts the ties to the machine's mounts; then shared
		// among the node's own, since pods' volumes may ask for propagation.
		for _, flag := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
			if err := syscall.Mount("", "/", "", syscall.MS_REC|flag, ""); err != nil {
				return fmt.Errorf("part the node's mounts from the machine's: %w", err)
			}
		}
		for _, place := range privatePlaces {
			if err := syscall.Mount("tmpfs", place, "tmpfs", 0, "mode=755"); err != nil {
				return fmt.Errorf("mount %s: %w", place, err)
			}
		}
		return syscall.Sethostname([]byte(nodeName))
	})
	if err != nil {
		return err
	}
	// A proc file system shows the pid namespace of the process that mounts it,
	// and a thread that merely entered is not in it.
	if out, err := n.combined(exec.Command("mount", "-t", "proc", "proc", "/proc")); err != nil {
		return fmt.Errorf("mount the node's /proc: %w: %s", err, out)
	}
	return n.do(func() error {
		for _, s := range sysctls {
			if err := syscall.Mount(fakeFile(fake, s.name), "/proc/sys/"+s.name, "", syscall.MS_BIND, ""); err != nil {
				return fmt.Errorf("cover sysctl %s: %w", s.name, err)
			}
		}
		return nil
	})
}

func fakeFile(dir, sysctl string) string {
	return filepath.Join(dir, strings.ReplaceAll(sysctl, "/", "_"))
}

// mountsBelow returns the mount points of this process's own mount namespace
// that are in dir or are dir.
func mountsBelow(dir string) ([]string, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	var below []string
	for _, m := range mounts {
		if m.point == dir || strings.HasPrefix(m.point, dir+"/") {
			below = append(below, m.point)
		}
	}
	return below, nil
}

// mount is a line of mountinfo.
type mount struct {
	point  string
	fsType string
}

// readMounts returns the mounts that the calling thread sees. The process as a
// whole may not do: a thread of it may be in a node's namespaces.
func readMounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	return parseMounts(string(content))
}

// parseMounts parses mountinfo, see proc(5).
func parseMounts(content string) ([]mount, error) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []mount
	for line := range strings.Lines(content) {
		before, after, found := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !found || len(left) < 5 || len(right) < 1 {
			return nil, fmt.Errorf("malformed line of mountinfo: %q", line)
		}
		mounts = append(mounts, mount{point: unescape.Replace(left[4]), fsType: right[0]})
	}
	return mounts, nil
}
