package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/headgate/headgate/dataplane/admin"
	"github.com/headgate/headgate/dataplane/handover"
)

// adminGate is a process that hands over its admin server's port only.
type adminGate struct{ *adminServer }

func (g adminGate) Sockets() ([]handover.Socket, error) {
	s, ok, err := g.socket()
	if !ok || err != nil {
		return nil, err
	}
	return []handover.Socket{s}, nil
}
func (g adminGate) Pause()  { g.pause() }
func (g adminGate) Resume() { g.resume() }

// adminProcess is an admin server with its part in a hand-over.
func adminProcess(t *testing.T, dir, addr string) (*adminServer, *handover.Handover) {
	t.Helper()
	pages, err := admin.New(admin.Options{DataPlane: new(standIn), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	a := &adminServer{server: pages, log: zaptest.NewLogger(t)}
	h, err := handover.Open(handover.Options{Dir: dir, Build: "test", Gate: adminGate{a}, Logger: a.log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	h.Take(t.Context())
	if err := a.listen(addr, "", h); err != nil {
		t.Fatal(err)
	}
	return a, h
}

// Requests that come to the port between the giving of its socket and the end of
// the hand-over are answered, and do not keep the old process from pausing.
func TestAdminPortPassesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "h")
	if err := handover.Prepare(dir, os.Geteuid(), os.Getegid()); err != nil {
		t.Fatal(err)
	}
	old, before := adminProcess(t, dir, "127.0.0.1:0")
	addr := old.ln.Addr().String()
	if err := before.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, after := adminProcess(t, dir, addr)
	if next.port == nil || next.ln != nil {
		t.Fatal("the port was not handed over")
	}
	for range 3 {
		mustAnswer(t, addr)
	}
	if err := after.Serving(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before.Stats().Accepting || after.Stats().Taken != 1 {
		t.Errorf("the old process did not pause: %+v", before.Stats())
	}
	next.resume()
	mustAnswer(t, addr)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, a := range []*adminServer{old, next} {
			if err := a.close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		after.Close()
		before.Close()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the servers do not end")
	}
}

func mustAnswer(t *testing.T, addr string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Get("http://" + addr + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
