package multicall

import (
	"slices"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		got  []string // what the program was given; nil if none ran
	}{
		{"by link", []string{"/cache/bin/etcd", "--version"}, 7, []string{"etcd", "--version"}},
		{"by argument", []string{"/cache/bin/kube-all", "etcd", "--version"}, 7, []string{"etcd", "--version"}},
		{"the link wins", []string{"etcd", "etcd"}, 7, []string{"etcd", "etcd"}},
		{"unknown", []string{"kube-all", "etcdctl"}, 2, nil},
		{"none", []string{"kube-all"}, 2, nil},
		{"no arguments at all", nil, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			programs := map[string]Program{
				"etcd":    func(args []string) int { got = args; return 7 },
				"kubelet": func([]string) int { return 8 },
			}
			var stderr strings.Builder
			if code := Run(tc.args, programs, &stderr); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !slices.Equal(got, tc.got) {
				t.Errorf("program got %q, want %q", got, tc.got)
			}
			if usage := strings.Contains(stderr.String(), "etcd, kubelet"); usage != (tc.got == nil) {
				t.Errorf("usage on stderr: %q", stderr.String())
			}
		})
	}
}
