package port

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestScan(t *testing.T) {
	four := heading +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 1603 1 0000000000000000 100 0 0 10 0\n" +
		"   1: 0500000A:0050 0600000A:D431 01 00000000:00000000 02:000A8E6D 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1\n"
	six := heading +
		"   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0\n" +
		"   1: B80D0120000000000000000001000000:01BB 0000000000000000FFFF00000600000A:D431 03 00000000:00000000 00:00000000 00000000     0        0 8 1 0 100 0 0 10 0\n"
	ap := netip.MustParseAddrPort
	want := []entry{
		{ap("127.0.0.1:8080"), ap("0.0.0.0:0"), listening, 33, 1603},
		{ap("10.0.0.5:80"), ap("10.0.0.6:54321"), established, 0, 0},
		{ap("[::]:80"), ap("[::]:0"), listening, 0, 7},
		{ap("[2001:db8::1]:443"), ap("[::ffff:10.0.0.6]:54321"), synReceived, 0, 8},
	}
	var got []entry
	for _, text := range []string{four, six} {
		if err := scan(strings.NewReader(text), func(e entry) bool {
			got = append(got, e)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	n := 0
	if err := scan(strings.NewReader(four), func(entry) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("read on after the caller had enough: %d entries, %v", n, err)
	}
}

func TestScanBroken(t *testing.T) {
	for name, line := range map[string]string{
		"short":     "   0: 0100007F:1F90 00000000:0000 0A",
		"address":   "   0: 0100007:1F90 00000000:0000 0A 0:0 00:0 0 0 0 1603",
		"length":    "   0: 0100007F01:1F90 00000000:0000 0A 0:0 00:0 0 0 0 1603",
		"port":      "   0: 0100007F:1F900 00000000:0000 0A 0:0 00:0 0 0 0 1603",
		"no port":   "   0: 0100007F 00000000:0000 0A 0:0 00:0 0 0 0 1603",
		"remote":    "   0: 0100007F:1F90 x:0000 0A 0:0 00:0 0 0 0 1603",
		"state":     "   0: 0100007F:1F90 00000000:0000 XX 0:0 00:0 0 0 0 1603",
		"user":      "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 -1 0 1603",
		"inode":     "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 x",
		"long line": strings.Repeat("x", 1<<17),
	} {
		if err := scan(strings.NewReader(heading+line+"\n"), func(entry) bool { return true }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestClashes(t *testing.T) {
	for _, c := range []struct {
		have, want string
		clash      bool
	}{
		{"0.0.0.0:80", "0.0.0.0:80", true},
		{"10.0.0.5:80", "0.0.0.0:80", true},
		{"0.0.0.0:80", "10.0.0.5:80", true},
		{"10.0.0.5:80", "10.0.0.5:80", true},
		{"10.0.0.5:80", "10.0.0.6:80", false},
		{"0.0.0.0:80", "0.0.0.0:81", false},
		{"[::]:80", "0.0.0.0:80", true}, // may hold both
		{"[::]:80", "10.0.0.5:80", true},
		{"[::1]:80", "0.0.0.0:80", false},
		{"[::ffff:10.0.0.5]:80", "10.0.0.5:80", true},
		{"[::ffff:10.0.0.5]:80", "10.0.0.6:80", false},
		{"0.0.0.0:80", "[::]:80", false}, // ours have IPv6 only
		{"[::1]:80", "[::]:80", true},
		{"[::1]:80", "[::2]:80", false},
	} {
		if got := clashes(netip.MustParseAddrPort(c.have), netip.MustParseAddrPort(c.want)); got != c.clash {
			t.Errorf("%s keeps others from %s: %v, want %v", c.have, c.want, got, c.clash)
		}
	}
}
