package dataplane

import (
	"errors"
	"io"

	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/tlsterm"
)

// sealAt is how much plaintext is collected before it is encrypted in the
// middle of an event.
const sealAt = 64 << 10

// protocolH2 is HTTP/2's name in ALPN (RFC 9113, 3.2).
const protocolH2 = "h2"

// pauseHandshake: the handshake has all the input that it can use.
const pauseHandshake uint8 = 1 << 7

var errPlainHTTP = &message.RequestError{Origin: message.Client, Status: 400, Reason: "plain_http", Err: errors.New("plain HTTP was sent to a port that speaks HTTPS")}

// tlsCarrier is a client as its TLS session sees it.
type tlsCarrier client

// Post runs fn on the loop.
func (t *tlsCarrier) Post(fn func()) { t.worker.Post(fn) }

// WriteWire sends ciphertext.
func (t *tlsCarrier) WriteWire(p []byte) {
	t.worker.metrics.Sent(len(p))
	t.wire += int64(len(p))
	t.conn.Write(p)
}

// Handshaken starts the connection's HTTP, or ends the connection.
func (t *tlsCarrier) Handshaken(err error) {
	c := (*client)(t)
	if c.closed {
		return
	}
	c.worker.metrics.Handshake(err == nil)
	if err != nil {
		c.finish(false)
		return
	}
	c.ready = true
	c.worker.accepted(c.progress)
	c.unpause(pauseHandshake)
	if c.tls.Protocol() == protocolH2 {
		c.startH2()
		c.readPlain()
		return
	}
	c.arm(waitRequest, c.socket.idleTimeout())
	c.readPlain()
}

// feedTLS takes ciphertext.
func (c *client) feedTLS(p []byte) {
	err := c.tls.Feed(p)
	switch {
	case errors.Is(err, tlsterm.ErrNotTLS):
		c.worker.metrics.Handshake(false)
		c.tls = nil
		c.ready = true
		c.refuse(c.worker.take(), errPlainHTTP)
	case err != nil:
		c.abort(err)
	case !c.ready:
		if c.tls.Full() {
			c.pause(pauseHandshake)
		}
	default:
		c.readPlain()
	}
}

// readPlain takes what the session has decrypted.
func (c *client) readPlain() {
	w := c.worker
	if w.plain == nil {
		w.plain = make([]byte, plainBuffer)
	}
	for !c.closed {
		n, err := c.tls.Read(w.plain)
		if n > 0 {
			c.input(w.plain[:n])
			continue
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			c.inputEnded()
		default:
			c.abort(err)
		}
		return
	}
}

// write sends plaintext to the client.
func (c *client) write(p []byte) {
	if c.tls == nil {
		c.worker.metrics.Sent(len(p))
		c.conn.Write(p)
		return
	}
	if c.out == nil {
		c.out = c.worker.borrow()
		c.worker.dirty = append(c.worker.dirty, c)
	}
	for len(p) > 0 {
		n := min(len(p), sealAt-len(c.out))
		c.out = append(c.out, p[:n]...)
		p = p[n:]
		if len(c.out) >= sealAt {
			c.encrypt()
		}
	}
}

// encrypt turns the collected plaintext into records.
func (c *client) encrypt() {
	if err := c.tls.Write(c.out); err != nil {
		// Not at once: the exchange that writes is on the stack.
		c.worker.Post(func() { c.abort(err) })
	}
	c.out = c.out[:0]
}

// seal encrypts what is left at the end of an event and gives the buffer back.
func (c *client) seal() {
	if c.out == nil {
		return
	}
	if len(c.out) > 0 {
		c.encrypt()
	}
	c.dropOut()
	if c.ex != nil {
		c.ex.throttle()
	}
}

func (c *client) dropOut() {
	if c.out != nil {
		c.worker.giveBack(c.out)
		c.out = nil
	}
}
