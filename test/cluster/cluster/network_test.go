package cluster

import (
	"net/netip"
	"strings"
	"testing"
)

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
