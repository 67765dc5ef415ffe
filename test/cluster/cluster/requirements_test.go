package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/cluster/binaries"
)

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
