package tlsterm

import (
	"container/list"
	"crypto/tls"
	"fmt"
	"runtime/debug"
	"sync"
)

// Bounds of what a session holds of its peer's input.
const (
	// handshakeInput is more than any handshake needs from a client: crypto/tls
	// takes messages of up to 64 KiB, and a hello may come twice.
	handshakeInput = 160 << 10
	// maxUnread is where a caller that does not pause reading is stopped.
	maxUnread = 1 << 20
)

// handshake is a session's handshake. It runs crypto/tls on a goroutine, which
// has a place in the gate whenever it computes and gives it back while it waits
// for the client. A goroutine, and not the loop, because it takes as long as
// ten small requests, with RSA fifty; see DESIGN.md for figures.
type handshake struct {
	s    *Session
	gate *gate
	wake chan struct{} // data arrived, the place was granted, or closed

	mu      sync.Mutex
	closed  bool
	waiting bool          // the goroutine waits for a record
	fed     int           // bytes that arrived since the connection began
	out     *buffer       // records for the loop to send; nil when none
	queued  *list.Element // in the gate before the goroutine exists

	refusal error // by the goroutine only: why no certificate was given
}

// start puts the handshake into the gate. It runs on the loop.
func (h *handshake) start() {
	e := h.gate.enter(false, func() { go h.run() })
	h.mu.Lock()
	h.queued = e
	h.mu.Unlock()
}

// run is the goroutine.
func (h *handshake) run() {
	conn := tls.Server((*wire)(h.s), h.s.socket.current.Load().config)
	err := h.shake(conn)
	h.gate.leave()
	if h.refusal != nil && err != nil {
		err = h.refusal
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if !closed {
		h.s.carrier.Post(func() { h.s.handshaken(conn, err) })
	}
}

// shake runs the handshake. A panic ends this connection only, as it would on a
// loop.
func (h *handshake) shake(conn *tls.Conn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a tls handshake: %v\n%s", r, debug.Stack())
		}
	}()
	return conn.Handshake()
}

// read waits for a whole record. It runs on the goroutine.
func (h *handshake) read(p []byte) (int, error) {
	h.mu.Lock()
	for {
		if h.closed {
			h.mu.Unlock()
			return 0, ErrClosed
		}
		if n := h.s.in.take(p); n > 0 {
			h.mu.Unlock()
			return n, nil
		}
		if h.fed >= handshakeInput {
			h.mu.Unlock()
			return 0, ErrTooMuchInput
		}
		h.waiting = true
		flush := h.out != nil
		h.mu.Unlock()
		h.gate.leave()
		if flush {
			h.s.carrier.Post(h.flush)
		}
		<-h.wake
		h.gate.enter(true, func() { h.wake <- struct{}{} })
		<-h.wake
		h.mu.Lock()
	}
}

// write keeps records for the loop. It runs on the goroutine.
func (h *handshake) write(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.out = h.s.socket.t.buffers.grow(h.out, len(p))
	h.out.b = append(h.out.b, p...)
}

// feed adds input. It runs on the loop.
func (h *handshake) feed(p []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.s.in.len()+len(p) > maxUnread {
		return ErrTooMuchInput
	}
	h.s.in.feed(p)
	h.fed += len(p)
	if h.waiting && (h.s.in.ready() || h.fed >= handshakeInput) {
		h.waiting = false
		h.wake <- struct{}{}
	}
	return nil
}

// full tells whether what has arrived is enough to end the handshake, one way
// or the other.
func (h *handshake) full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fed >= handshakeInput
}

// flush sends what is there. It runs on the loop.
func (h *handshake) flush() {
	h.mu.Lock()
	out := h.out
	h.out = nil
	h.mu.Unlock()
	if out != nil {
		if h.s.phase != phaseClosed {
			h.s.carrier.WriteWire(out.b)
		}
		h.s.socket.t.buffers.put(out)
	}
}

// close makes the goroutine end soon, without a word to the carrier. It runs on
// the loop.
func (h *handshake) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.queued != nil {
		h.gate.withdraw(h.queued)
	}
	if h.waiting {
		h.waiting = false
		h.wake <- struct{}{}
	}
	h.s.in.release()
}
