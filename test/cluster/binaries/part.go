package binaries

import (
	"fmt"
	"strings"
)

// Part is one of the things that can be built.
type Part struct {
	name     string
	pkg      string   // package in kube-all
	programs []string // what it is called as
	pause    bool     // with pause and its image
}

// All returns the parts, the one with everything first.
func All() []Part {
	return []Part{
		{
			name: "all", pkg: ".", pause: true,
			programs: []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"},
		},
		{name: "envtest", pkg: "./envtest", programs: []string{"etcd", "kube-apiserver", "kubectl"}},
		{name: "kubectl", pkg: "./kubectl", programs: []string{"kubectl"}},
	}
}

// ParsePart returns the part that is called name.
func ParsePart(name string) (Part, error) {
	var names []string
	for _, p := range All() {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return Part{}, fmt.Errorf("there is no part %q: it is one of %s", name, strings.Join(names, ", "))
}

// Name returns the part's name.
func (p Part) Name() string { return p.name }
