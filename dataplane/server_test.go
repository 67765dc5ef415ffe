package dataplane

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
)

func TestProxiesRequestsAndAnswers(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Forwarded-For"))
		_, _ = w.Write(append([]byte("got "), body...))
	})
	s := newServer(t, nil)
	addr := apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil))
	for i := range 10 {
		req, _ := http.NewRequest(http.MethodPost, "http://"+addr+"/a/b?c=d", strings.NewReader(fmt.Sprint("body", i)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := fmt.Sprint("got body", i); string(body) != want || resp.StatusCode != 200 {
			t.Fatalf("answer %d %q, want %q", resp.StatusCode, body, want)
		}
		if got := resp.Header.Get("X-Seen"); got != "POST /a/b?c=d 127.0.0.1" {
			t.Fatalf("backend saw %q", got)
		}
	}
}

func TestBodiesPassUnchangedBothWaysAtOnce(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	s := newServer(t, nil)
	addr := apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := bytes.Repeat([]byte{byte('a' + i)}, 3<<20+i)
			resp, err := http.Post("http://"+addr+"/", "application/octet-stream", io.MultiReader(bytes.NewReader(want)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("body %d came back different: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
}

func TestNoListenerNoRouteNoBackend(t *testing.T) {
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/empty:80"), nil)
	addr := apply(t, s, snap)
	resp, err := http.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || !strings.Contains(string(body), "no_endpoints") {
		t.Fatalf("got %d %q", resp.StatusCode, body)
	}
}

func TestShutdownWaitsForWhatIsUnderWay(t *testing.T) {
	release := make(chan struct{})
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = w.Write([]byte("done"))
	})
	s := newServer(t, nil)
	addr := apply(t, s, oneRoute(clusterOf("default/be:80", be.URL), nil))
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/")
		if err != nil {
			answer <- err.Error()
			return
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answer <- fmt.Sprint(string(body), " close=", resp.Close)
	}()
	for clusterStats(s)["default/be:80"].Active == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	if _, err := http.Get("http://" + addr + "/"); err == nil {
		t.Error("a connection was accepted during the drain")
	}
	close(release)
	if got := <-answer; got != "done close=true" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// A path that is not in normal form is refused by the table, after the clusters
// were looked at.
func TestARefusedSnapshotChangesNothing(t *testing.T) {
	be := backendServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "first") })
	s := newServer(t, nil)
	snap := oneRoute(clusterOf("default/be:80", be.URL), nil)
	addr := apply(t, s, snap)
	bad := oneRoute(clusterOf("default/be:80"), func(r *ir.Rule) { r.Matches[0].Path.Value = "/a/../b" })
	bad.Clusters = append(bad.Clusters, clusterOf("default/new:80"))
	if r := s.Apply(bad); r.Err == nil {
		t.Fatal("the snapshot was taken")
	}
	if got := clusterStats(s); len(got) != 1 || got["default/be:80"].Endpoints != 1 {
		t.Fatalf("clusters after the refusal: %+v", got)
	}
	resp, err := http.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "first" {
		t.Fatalf("got %d %q", resp.StatusCode, body)
	}
}

// What flags can say of a pool is refused before a cluster is made of it.
func TestBadPoolIsRefused(t *testing.T) {
	for name, pool := range map[string]ir.Pool{
		"size": {Size: -1}, "huge": {Size: 1<<31 - 1}, "connect timeout": {ConnectTimeout: -time.Second}, "idle timeout": {IdleTimeout: -1},
	} {
		m, err := metrics.New(metrics.Options{Loops: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Reactor: reactor.Options{Workers: 1}, Metrics: m, Logger: zap.NewNop(), Now: time.Now, Pool: pool})
		if err == nil {
			t.Errorf("%s: accepted", name)
			_ = s.Shutdown(t.Context())
		} else if !strings.Contains(err.Error(), "pool") {
			t.Errorf("%s: the error is %q", name, err)
		}
	}
}
