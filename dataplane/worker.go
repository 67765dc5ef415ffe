package dataplane

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/headgate/headgate/dataplane/accesslog"
	"github.com/headgate/headgate/dataplane/metrics"
	"github.com/headgate/headgate/dataplane/reactor"
	"github.com/headgate/headgate/dataplane/upstream"
)

// Bounds on what a worker keeps for reuse. Fewer exchanges than are under way
// at once would mean garbage: with 1,000 busy connections on one loop a request
// cost 1.65 times the CPU of a bare relay with room for 256, 1.38 times with
// room for them all (test/bench/results).
const (
	maxFreeExchanges = 2048
	maxRetained      = 8 << 10  // bytes of one recycled exchange, so 16 MiB in all
	plainBuffer      = 32 << 10 // decrypted bytes that are read at once
	borrowed         = sealAt + 4<<10
)

// worker is what the data plane keeps for one loop. Everything in it belongs to
// the loop.
type worker struct {
	srv     *Server
	loop    *reactor.Loop
	index   int
	metrics *metrics.Loop
	log     *accesslog.Writer // nil when there is no access log
	entry   accesslog.Entry

	clients clientList
	free    []*exchange
	streams []*h2stream // recycled
	frames  []byte      // what h2 codecs append to; empty between two calls
	scratch []byte      // heads are written here first
	plain   []byte      // decrypted input; allocated by the first TLS connection
	out     [][]byte
	dirty   []*client // TLS connections with plaintext to seal at the end of the event
	random  *rand.ChaCha8

	sayRefused time.Time // when a connection without a header is next logged
	refused    uint64    // those that were not

	pipeline pipeline
}

func newWorker(srv *Server, loop *reactor.Loop) *worker {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	w := &worker{srv: srv, loop: loop, index: loop.Index(), metrics: srv.opts.Metrics.Loop(loop.Index()), random: rand.NewChaCha8(seed)}
	if srv.opts.AccessLog != nil {
		w.log = srv.opts.AccessLog.Loop(w.index)
	}
	return w
}

// take returns an exchange that is ready for a request.
func (w *worker) take() *exchange {
	if n := len(w.free); n > 0 {
		ex := w.free[n-1]
		w.free = w.free[:n-1]
		return ex
	}
	ex := &exchange{worker: w}
	ex.stream.Init(w, ex, ex.abandoned)
	ex.requestTimer.Fire = ex.requestExpired
	ex.tryTimer.Fire = ex.tryExpired
	return ex
}

// recycle takes back an exchange that ended.
func (w *worker) recycle(ex *exchange) {
	if len(w.free) >= maxFreeExchanges || ex.retained() > maxRetained {
		return
	}
	ex.reset()
	w.free = append(w.free, ex)
}

// borrow returns an empty buffer for plaintext; giveBack takes it back.
func (w *worker) borrow() []byte {
	if n := len(w.out); n > 0 {
		b := w.out[n-1]
		w.out = w.out[:n-1]
		return b
	}
	return make([]byte, 0, borrowed)
}

func (w *worker) giveBack(b []byte) {
	if len(w.out) < 16 {
		w.out = append(w.out, b[:0])
	}
}

// flush seals what TLS connections were given during this event. Every way into
// the data plane ends with it.
func (w *worker) flush() {
	for i := 0; i < len(w.dirty); i++ {
		w.dirty[i].seal()
		w.dirty[i] = nil
	}
	w.dirty = w.dirty[:0]
}

// requestID appends a new random request id, 32 hexadecimal digits.
func (w *worker) requestID(dst []byte) []byte {
	var id [16]byte
	for i := 0; i < len(id); i += 8 {
		v := w.random.Uint64()
		for j := range 8 {
			id[i+j] = byte(v >> (8 * j))
		}
	}
	return hex.AppendEncode(dst, id[:])
}

// The methods below make a worker the [upstream.Loop] of its shards.

// Now returns the loop's time.
func (w *worker) Now() time.Time { return w.loop.Now() }

// Post runs fn on the loop.
func (w *worker) Post(fn func()) {
	w.loop.Post(func() {
		fn()
		w.flush()
	})
}

// NewTimer returns a timer on the loop.
func (w *worker) NewTimer(fire func(now time.Time)) upstream.Timer {
	t := &loopTimer{loop: w.loop}
	t.timer.Fire = func(now time.Time) {
		fire(now)
		w.flush()
	}
	return t
}

// Dial starts an upstream connection.
func (w *worker) Dial(addr netip.AddrPort, c *upstream.Conn) (upstream.Transport, error) {
	return w.loop.Dial(addr, &upstreamHandler{worker: w, conn: c})
}

// loopTimer is an [upstream.Timer].
type loopTimer struct {
	timer reactor.Timer
	loop  *reactor.Loop
}

func (t *loopTimer) Schedule(d time.Duration) { t.loop.Schedule(&t.timer, d) }
func (t *loopTimer) Cancel()                  { t.loop.Cancel(&t.timer) }

// upstreamHandler passes a socket's events to an upstream connection.
type upstreamHandler struct {
	worker *worker
	conn   *upstream.Conn
}

func (h *upstreamHandler) OnConnect(*reactor.Conn) {
	h.conn.OnConnect()
	h.worker.flush()
}

func (h *upstreamHandler) OnRead(_ *reactor.Conn, p []byte) {
	h.conn.OnRead(p)
	h.worker.flush()
}

func (h *upstreamHandler) OnDrained(*reactor.Conn) {
	h.conn.OnDrained()
	h.worker.flush()
}

func (h *upstreamHandler) OnClose(_ *reactor.Conn, err error) {
	h.conn.OnClose(err)
	h.worker.flush()
}
