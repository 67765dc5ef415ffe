package cluster

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
