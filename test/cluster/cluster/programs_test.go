package cluster

import (
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	for _, mode := range []Mode{ControlPlane, Node} {
		t.Run(string(mode), func(t *testing.T) {
			p := programs{layout: layout{dir: "/state"}, mode: mode, bin: "/cache/bin"}
			all := []program{p.etcd(), p.apiServer(), p.controllerManager(), p.scheduler()}
			if mode == Node {
				all = append([]program{p.pause(), p.containerd()}, append(all, p.kubelet(), p.proxy())...)
			}
			var got strings.Builder
			for _, call := range all {
				got.WriteString(call.name + ":\n  " + strings.Join(call.args, "\n    ") + "\n")
			}
			golden(t, "programs-"+string(mode)+".txt", got.String())
		})
	}
}
