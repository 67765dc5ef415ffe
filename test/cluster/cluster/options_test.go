package cluster

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/cluster/binaries"
)

func TestOptions(t *testing.T) {
	addresses := []netip.Prefix{netip.MustParsePrefix("10.90.0.64/26")}
	for _, tc := range []struct {
		name    string
		options Options
		err     string
	}{
		{"control plane", Options{Mode: ControlPlane, Binaries: "/b"}, ""},
		{"node", Options{Mode: Node, Binaries: "/b", Images: []string{"x.tar"}, Addresses: addresses, Proxy: IPTables}, ""},
		{"no mode", Options{Binaries: "/b"}, `mode "" is neither cp nor node`},
		{"no binaries", Options{Mode: Node}, "binaries"},
		{"proxy", Options{Mode: Node, Binaries: "/b", Proxy: "ipvs"}, `proxy mode "ipvs"`},
		{"time-out", Options{Mode: Node, Binaries: "/b", Timeout: -1}, "negative"},
		{"images without a node", Options{Mode: ControlPlane, Binaries: "/b", Images: []string{"x.tar"}}, "images need a node"},
		{"addresses without a node", Options{Mode: ControlPlane, Binaries: "/b", Addresses: addresses}, "addresses need a node"},
		{"foreign addresses", Options{Mode: Node, Binaries: "/b", Addresses: []netip.Prefix{netip.MustParsePrefix("10.91.0.0/26")}}, "not in the node's network"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.options.complete()
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
		})
	}
}

func TestOptionsDefaults(t *testing.T) {
	o, err := Options{Mode: Node, Binaries: "b"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.Dir != DefaultDir() || o.Proxy != NFTables || o.Timeout != 3*time.Minute || o.Output == nil || !filepath.IsAbs(o.Binaries) {
		t.Errorf("defaults: %+v", o)
	}
}

func TestExpand(t *testing.T) {
	for _, tc := range []struct {
		prefix      string
		first, last string
		count       int
		err         string
	}{
		{"10.90.0.64/26", "10.90.0.64", "10.90.0.127", 64, ""},
		{"10.90.0.70/26", "10.90.0.64", "10.90.0.127", 64, ""},
		{"10.90.0.200/32", "10.90.0.200", "10.90.0.200", 1, ""},
		{"10.90.0.128/26", "10.90.0.128", "10.90.0.191", 64, ""},
		{"10.90.0.0/26", "", "", 0, "has 10.90.0.0 in it, which is taken"},
		{"10.90.0.1/32", "", "", 0, "has 10.90.0.1 in it, which is taken"},
		{"10.90.0.2/32", "", "", 0, "has 10.90.0.2 in it, which is taken"},
		{"10.90.0.192/26", "", "", 0, "has 10.90.0.255 in it, which is taken"},
		{"10.90.0.0/16", "", "", 0, "not in the node's network"},
		{"10.90.1.64/26", "", "", 0, "not in the node's network"},
		{"fd00::/120", "", "", 0, "not in the node's network"},
	} {
		t.Run(tc.prefix, func(t *testing.T) {
			got, err := expand(netip.MustParsePrefix(tc.prefix))
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want one with %q", err, tc.err)
			}
			if len(got) != tc.count {
				t.Fatalf("%d addresses, want %d", len(got), tc.count)
			}
			if tc.count > 0 && (got[0].String() != tc.first || got[len(got)-1].String() != tc.last) {
				t.Errorf("%s to %s, want %s to %s", got[0], got[len(got)-1], tc.first, tc.last)
			}
		})
	}
	if _, err := expand(netip.Prefix{}); err == nil {
		t.Error("no prefix at all is taken")
	}
}

func TestCheckBinaries(t *testing.T) {
	dir := t.TempDir()
	missing := new(MissingError)
	if err := checkBinaries(dir, ControlPlane); !errors.As(err, &missing) || !strings.Contains(err.Error(), "build them first") {
		t.Fatalf("nothing built: %v", err)
	}
	write := func(paths ...string) {
		for _, path := range paths {
			full := filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, nil, 0o755)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("bin/etcd", "bin/kube-apiserver", "bin/kube-controller-manager", "bin/kube-scheduler", "bin/kubectl")
	if err := checkBinaries(dir, ControlPlane); err != nil {
		t.Error(err)
	}
	if err := checkBinaries(dir, Node); err == nil {
		t.Error("a node without its programs is taken")
	}
	write("bin/kubelet", "bin/kube-proxy", "bin/pause", binaries.PauseArchive)
	if err := checkBinaries(dir, Node); err != nil {
		t.Error(err)
	}
}

func TestMissingPrograms(t *testing.T) {
	lacks := func(names ...string) func(string) (string, error) {
		return func(program string) (string, error) {
			for _, name := range names {
				if strings.HasSuffix(program, name) {
					return "", os.ErrNotExist
				}
			}
			return program, nil
		}
	}
	if err := missingPrograms(lacks()); err != nil {
		t.Errorf("with everything: %v", err)
	}
	err := missingPrograms(lacks("ctr", "containerd", "bridge", "portmap"))
	missing := new(MissingError)
	if !errors.As(err, &missing) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff([]string{"containerd", "containernetworking-plugins"}, missing.Packages); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	want := "this machine lacks containerd, ctr, /usr/lib/cni/bridge, /usr/lib/cni/portmap; install what has them:\n" +
		"  apt-get update && apt-get install -y --no-install-recommends containerd containernetworking-plugins"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestFindCRDs(t *testing.T) {
	dir := t.TempDir()
	if isKustomization(dir) {
		t.Error("an empty directory is taken for a kustomization")
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !isKustomization(dir) {
		t.Error("a kustomization is not seen")
	}
	if got, err := findCRDs(t.Context(), dir); got != dir || err != nil {
		t.Errorf("a directory: %q, %v", got, err)
	}
	if _, err := findCRDs(t.Context(), filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "gateway-api-experimental") {
		t.Errorf("a missing one: %v, which does not say what there is", err)
	}
}
