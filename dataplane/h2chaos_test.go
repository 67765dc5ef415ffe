package dataplane

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/ir"
)

// TestH2Chaos has clients that do what they like, at backends that do too. The
// server must survive, and at the end hold nothing: no connection, no place in
// the pool.
func TestH2Chaos(t *testing.T) {
	for name, pool := range map[string]ir.Pool{
		"large-pool": {},
		// Where one stream's end is another one's beginning, on the same stack.
		"small-pool": {Size: 3, ResponseTimeout: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { testH2Chaos(t, pool) })
	}
}

func testH2Chaos(t *testing.T, pool ir.Pool) {
	be := backendServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, 300_000))
		case "/early":
			w.WriteHeader(413)
		case "/abort":
			_, _ = w.Write(make([]byte, 10_000))
			panic(http.ErrAbortHandler)
		case "/hang":
			_, _ = io.Copy(io.Discard, r.Body) // without it net/http does not see the connection's end
			<-r.Context().Done()
		case "/trailers":
			w.Header().Set("Trailer", "X")
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X", "1")
		default:
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, r.Body)
		}
	})
	s := newServer(t, func(o *Options) {
		o.Timeouts.Body, o.Timeouts.Write = 300*time.Millisecond, 300*time.Millisecond
		o.Timeouts.Header = 5 * time.Second // has room for 40 handshakes
		o.Timeouts.Linger = 100 * time.Millisecond
	})
	cl := clusterOf("default/be:80", be.URL)
	cl.Pool = pool
	addr := apply(t, s, secure(t, oneRoute(cl, nil)))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { chaos(t, addr, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	wg.Wait()
	end := time.Now().Add(2 * patience)
	for {
		cl := clusterStats(s)["default/be:80"]
		if s.Connections() == 0 && cl.Active == 0 && cl.Held == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections and %d requests are left, %d held", s.Connections(), cl.Active, cl.Held)
		}
		time.Sleep(5 * time.Millisecond)
	}
	c := h2Client(t, addr)
	resp, err := c.Get("https://a.test/large")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); n != 300_000 || err != nil {
		t.Errorf("afterwards %d bytes, %v", n, err)
	}
}

// chaos is one client, until it has had enough or is sent away.
func chaos(t *testing.T, addr string, r *rand.Rand) {
	conn, err := tls.Dial("tcp", addr, clientTLS("h2"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Error(err)
		return
	}
	if r.IntN(3) > 0 { // one that reads
		go io.Copy(io.Discard, conn)
	}
	f := http2.NewFramer(conn, nil)
	f.AllowIllegalWrites = true
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{0, 10, 65535, 1 << 24}[r.IntN(4)]})
	var block headBuffer
	enc := hpack.NewEncoder(&block)
	last := uint32(1)
	paths := []string{"/", "/large", "/early", "/abort", "/hang", "/trailers", "/%zz", "/../.."}
	for range 150 {
		id := uint32(1 + 2*r.IntN(int(last/2)+1))
		var err error
		switch r.IntN(14) {
		case 0, 1, 2, 3, 4:
			block = block[:0]
			for _, h := range [][2]string{{":method", []string{"GET", "POST", "HEAD", "PUT"}[r.IntN(4)]}, {":scheme", "https"}, {":authority", "a.test"}, {":path", paths[r.IntN(len(paths))]}, {"x", fmt.Sprint(r.IntN(5))}} {
				_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
			}
			err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: last, BlockFragment: block, EndStream: r.IntN(2) == 0, EndHeaders: true, PadLength: uint8(r.IntN(3))})
			last += 2
		case 5, 6, 7:
			err = f.WriteData(id, r.IntN(3) == 0, make([]byte, r.IntN(9000)))
		case 8:
			err = f.WriteRSTStream(id, http2.ErrCodeCancel)
		case 9:
			err = f.WriteWindowUpdate(id, uint32(1+r.IntN(100_000)))
		case 10:
			err = f.WriteWindowUpdate(0, uint32(1+r.IntN(100_000)))
		case 11:
			err = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(r.IntN(200_000))})
		case 12:
			block = block[:0]
			_ = enc.WriteField(hpack.HeaderField{Name: "trailer", Value: "1"})
			if r.IntN(4) == 0 {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
			}
		default:
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
		}
		if err != nil {
			return // it was sent away, with good reason
		}
	}
	switch r.IntN(3) {
	case 0:
		_ = conn.CloseWrite()
		time.Sleep(20 * time.Millisecond)
	case 1:
		_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
		time.Sleep(20 * time.Millisecond)
	}
}
