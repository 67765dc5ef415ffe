package tlsterm

import (
	"net"
	"time"
)

// wire is a Session as crypto/tls sees it: a net.Conn over memory. While the
// handshake runs, its goroutine is the only caller; afterwards the loop is.
type wire Session

// wouldBlock is returned when no whole record is there. crypto/tls does not
// make it sticky, because it is temporary, and keeps what it has read.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "no whole record yet" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// Read gives crypto/tls what has arrived, whole records only.
func (w *wire) Read(p []byte) (int, error) {
	if w.hs != nil {
		return w.hs.read(p)
	}
	if n := w.in.take(p); n > 0 {
		return n, nil
	}
	return 0, wouldBlock{}
}

// Write takes records from crypto/tls. It takes all of them always: an error
// would be final for crypto/tls. The caller of Session.Write minds watermarks.
func (w *wire) Write(p []byte) (int, error) {
	switch {
	case w.hs != nil:
		w.hs.write(p)
	case w.batch:
		w.out = w.socket.t.buffers.grow(w.out, len(p))
		w.out.b = append(w.out.b, p...)
	default:
		w.carrier.WriteWire(p)
	}
	return len(p), nil
}

// Close, the addresses and the deadlines belong to the connection below, which
// is not crypto/tls's business.
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
