package e2e

import (
	"net"
	"testing"
	"time"
)

// A gateway that takes connections and never answers is found out: no client
// waits for ever, and each is a failure.
func TestLoadEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l := newLoad(target{addr: silent.Addr().String(), host: "silent", path: "/"}, 1, 1, 1)
	ended := make(chan map[string]bool, 1)
	go func() {
		time.Sleep(patience + time.Second)
		_, failures := l.end()
		kinds := make(map[string]bool)
		for _, f := range failures {
			kinds[f.kind] = true
		}
		ended <- kinds
	}()
	select {
	case kinds := <-ended:
		for _, kind := range []string{"keep-alive", "one connection per request", "WebSocket"} {
			if !kinds[kind] {
				t.Errorf("%s: no failure", kind)
			}
		}
	case <-time.After(4 * patience):
		t.Fatal("a client still waits")
	}
}
