package dataplane

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/dataplane/ir"
)

// named returns a cluster of n backends that answer with their number, sorted by
// address.
func named(t *testing.T, name string, n int) *ir.Cluster {
	t.Helper()
	var addresses []string
	for i := range n {
		b := backendServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Backend", string(rune('a'+i)))
		})
		addresses = append(addresses, b.Listener.Addr().String())
	}
	slices.Sort(addresses)
	return clusterOf(name, addresses...)
}

// ask sends one GET over a connection of its own.
func ask(t *testing.T, addr string, change func(*http.Request)) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	change(r)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Error(err)
	}
	answer.Body.Close()
	return answer
}

func TestConsistentHash(t *testing.T) {
	for _, test := range []struct {
		name string
		on   ir.HashOn
		set  func(r *http.Request, key string)
	}{
		{"header", ir.HashOn{Kind: ir.HashHeader, Name: "x-user"}, func(r *http.Request, key string) { r.Header.Set("X-User", key) }},
		{"cookie", ir.HashOn{Kind: ir.HashCookie, Name: "sid"}, func(r *http.Request, key string) {
			r.Header.Add("Cookie", "other=1; SID=no")
			r.Header.Add("Cookie", "a=b;sid="+key+"; z=sid")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, nil)
			c := named(t, "default/a:80", 4)
			c.Balance, c.HashOn = ir.BalanceConsistentHash, test.on
			addr := apply(t, s, oneRoute(c, nil))
			owners := map[string]bool{}
			for i := range 100 { // which backend owns a key depends on the ports, so on chance
				key := fmt.Sprint("k", i)
				owner := ask(t, addr, func(r *http.Request) { test.set(r, key) }).Header.Get("Backend")
				owners[owner] = true
				for range 2 {
					if got := ask(t, addr, func(r *http.Request) { test.set(r, key) }).Header.Get("Backend"); got != owner {
						t.Fatalf("key %s went to %s and to %s", key, owner, got)
					}
				}
			}
			if len(owners) != 4 {
				t.Errorf("100 keys went to %d of 4 backends", len(owners))
			}
			// Without a key the load is spread.
			owners = map[string]bool{}
			for range 40 {
				owners[ask(t, addr, func(*http.Request) {}).Header.Get("Backend")] = true
			}
			if len(owners) < 2 {
				t.Error("requests without a key all went to one backend")
			}
		})
	}
}

func TestHashOfTheClient(t *testing.T) {
	s := newServer(t, nil)
	c := named(t, "default/a:80", 4)
	c.Balance = ir.BalanceConsistentHash
	addr := apply(t, s, oneRoute(c, nil))
	owners := map[string]bool{}
	for i := range 20 {
		// What an untrusted client says of its address does not count.
		owners[ask(t, addr, func(r *http.Request) { r.Header.Set("X-Forwarded-For", string(rune('0'+i))) }).Header.Get("Backend")] = true
	}
	if len(owners) != 1 {
		t.Errorf("one client went to %d backends", len(owners))
	}
}

// TestEjection has one backend that resets every connection: no GET fails for
// long, since it is ejected.
func TestEjection(t *testing.T) {
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	go func() {
		for {
			conn, err := broken.Accept()
			if err != nil {
				return
			}
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}()
	good := backendServer(t, func(http.ResponseWriter, *http.Request) {})
	addresses := []string{broken.Addr().String(), good.Listener.Addr().String()}
	slices.Sort(addresses)
	c := clusterOf("default/a:80", addresses...)
	c.Balance = ir.BalanceRoundRobin
	s := newServer(t, nil)
	addr := apply(t, s, oneRoute(c, nil))
	failed := 0
	for range 60 {
		if ask(t, addr, func(*http.Request) {}).StatusCode != http.StatusOK {
			failed++
		}
	}
	if failed > 2*5 { // five in a row, seen by two loops
		t.Errorf("%d of 60 requests failed", failed)
	}
	if st := clusterStats(s)[c.Name]; st.Ejected != 1 {
		t.Errorf("state %+v", st)
	}
}

// TestCookie has the shapes of a Cookie field.
func TestCookie(t *testing.T) {
	for _, test := range []struct{ field, want string }{
		{"sid=1", "1"}, {"a=2; sid=1", "1"}, {"sid=1; sid=2", "1"}, {"sid=a=b", "a=b"}, {" sid=1 ;x", "1"},
		{"", ""}, {"sid", ""}, {"xsid=1", ""}, {"Sid=1", ""}, {";;=;", ""},
	} {
		if got := cookie([]byte(test.field), "sid"); string(got) != test.want {
			t.Errorf("%q: %q, want %q", test.field, got, test.want)
		}
	}
}
