package tlsterm

import "crypto/tls"

// Carrier is what a [Session] needs of its connection.
type Carrier interface {
	// Post runs fn on the connection's loop, soon and in order. It is called
	// from any goroutine, and may be called after the connection has ended.
	Post(fn func())
	// WriteWire sends ciphertext. It is called on the loop; p may be used until
	// it returns. It may call Close.
	WriteWire(p []byte)
	// Handshaken tells on the loop that the handshake is over. After nil there
	// may be plaintext at once: the carrier should call Read until it returns
	// 0. After an error the alert for the client was given to WriteWire, and
	// the session is closed. It is called once at most, never after Close.
	Handshaken(err error)
}

// phase is how far a session is.
type phase uint8

const (
	phaseHello     phase = iota // the first record has not arrived
	phaseHandshake              // hs runs
	phaseOpen
	phaseClosed
)

// batchPlaintext is how much plaintext is encrypted before WriteWire.
const batchPlaintext = 64 << 10

// crypto/tls begins with records that fit a packet, and makes them larger until
// growthBytes were sent.
const (
	firstRecord = 1024 // fits the first record, whatever the cipher
	growthBytes = 128 << 10
	fullRecord  = 16 << 10
)

// Session is the TLS of one connection. All methods run on the connection's
// loop; none of them blocks.
type Session struct {
	socket  *Socket
	carrier Carrier
	conn    *tls.Conn  // nil before phaseOpen
	hs      *handshake // set by Feed, cleared by handshaken: its goroutine reads it
	in      inbox      // under hs.mu while hs is there
	out     *buffer    // only inside Write
	sent    int        // bytes of plaintext, up to growthBytes

	serverName, protocol string
	version, suite       uint16
	phase                phase
	resumed              bool
	batch                bool // wire.Write collects in out
	drained              bool // crypto/tls holds no plaintext and no ciphertext
}

// NewSession returns the session of a new connection. The client's bytes go to
// Feed. There is no deadline: the caller sets a timer and calls Close.
func (s *Socket) NewSession(c Carrier) *Session {
	return &Session{socket: s, carrier: c, in: inbox{pools: &s.t.buffers}}
}

// Feed takes ciphertext that arrived, and copies it. Afterwards call Read until
// it returns 0, unless the plaintext has nowhere to go; then stop reading from
// the client, and call Read (not Feed) first when it has.
//
// The error is [ErrNotTLS], [ErrTooMuchInput] or [ErrClosed]; it ends the
// session, and Handshaken is not called.
func (s *Session) Feed(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	var err error
	switch s.phase {
	case phaseHello:
		if s.in.len() == 0 && p[0] != recordHandshake {
			err = ErrNotTLS
			break
		}
		s.in.feed(p)
		if s.in.ready() {
			s.phase = phaseHandshake
			s.hs = &handshake{s: s, gate: &s.socket.t.gate, wake: make(chan struct{}, 1), fed: s.in.len()}
			s.hs.start()
		}
	case phaseHandshake:
		err = s.hs.feed(p)
	case phaseOpen:
		if s.in.len()+len(p) > maxUnread {
			err = ErrTooMuchInput
			break
		}
		s.in.feed(p)
	case phaseClosed:
		return ErrClosed
	}
	if err != nil {
		s.Close()
	}
	return err
}

// Full tells that the handshake has all the input that it can use: stop reading
// from the client until Handshaken. It is always false after the handshake.
func (s *Session) Full() bool { return s.phase == phaseHandshake && s.hs.full() }

// handshaken takes the connection over from the goroutine.
func (s *Session) handshaken(conn *tls.Conn, err error) {
	s.hs.flush()
	if s.phase != phaseHandshake {
		return // closed before, or by WriteWire
	}
	s.hs = nil
	cs := conn.ConnectionState()
	s.serverName = lower(cs.ServerName)
	if err != nil {
		c := s.carrier
		s.Close()
		c.Handshaken(err)
		return
	}
	s.phase = phaseOpen
	s.conn = conn
	s.protocol = cs.NegotiatedProtocol
	s.version, s.suite, s.resumed = cs.Version, cs.CipherSuite, cs.DidResume
	s.carrier.Handshaken(nil)
}

// Read returns the next plaintext. It returns 0 and nil when more ciphertext is
// needed, and [io.EOF] after the client's close_notify. Any other error is
// final; the alert was given to WriteWire.
func (s *Session) Read(p []byte) (int, error) {
	switch s.phase {
	case phaseClosed:
		return 0, ErrClosed
	case phaseHello, phaseHandshake:
		return 0, nil
	}
	if s.drained && !s.in.ready() {
		s.in.settle()
		return 0, nil // what crypto/tls would say, but it allocates to say it
	}
	n, err := s.conn.Read(p)
	// It decrypts one record, and is shown no more than that.
	s.drained = n < len(p)
	if n > 0 {
		return n, nil // the error comes again
	}
	if _, ok := err.(wouldBlock); ok { //nolint:errorlint // our own value, as wire.Read returned it
		s.in.settle()
		return 0, nil
	}
	return 0, err
}

// Write encrypts p and gives the records to WriteWire: once for each 64 KiB of
// p or less. It returns [ErrHandshaking] before the handshake is over.
func (s *Session) Write(p []byte) error {
	switch s.phase {
	case phaseClosed:
		return ErrClosed
	case phaseHello, phaseHandshake:
		return ErrHandshaking
	}
	for len(p) > 0 {
		if s.phase != phaseOpen {
			return ErrClosed // by WriteWire
		}
		n := min(len(p), batchPlaintext)
		// One record needs no batch, and so one copy less.
		s.batch = n > fullRecord || n > firstRecord && s.sent < growthBytes
		if s.batch {
			s.out = s.socket.t.buffers.get(n + n/32 + 64) // the records' headers and tags
		}
		_, err := s.conn.Write(p[:n])
		s.batch = false
		if out := s.out; out != nil {
			s.out = nil
			s.carrier.WriteWire(out.b)
			s.socket.t.buffers.put(out)
		}
		if err != nil {
			return err
		}
		s.sent = min(s.sent+n, growthBytes)
		p = p[n:]
	}
	return nil
}

// CloseWrite sends close_notify: the client knows that no plaintext was cut
// off. Reading goes on.
func (s *Session) CloseWrite() error {
	switch s.phase {
	case phaseClosed:
		return ErrClosed
	case phaseHello, phaseHandshake:
		return ErrHandshaking
	}
	return s.conn.CloseWrite()
}

// Close releases everything and stops a handshake that is under way. It sends
// nothing. Further calls of any method are harmless.
func (s *Session) Close() {
	if s.phase == phaseHandshake && s.hs != nil {
		s.hs.close() // it releases s.in under its lock
	} else if s.phase != phaseClosed {
		s.in.release()
	}
	s.phase = phaseClosed
	s.conn = nil
}

// ServerName returns the name that the client asked for, in lower case, "" when
// it sent none or the hello has not been read.
func (s *Session) ServerName() string { return s.serverName }

// Protocol returns the negotiated application protocol, "" when the client
// offered none.
func (s *Session) Protocol() string { return s.protocol }

// Version returns the TLS version, for [tls.VersionName]; 0 before the
// handshake is over.
func (s *Session) Version() uint16 { return s.version }

// CipherSuite returns the cipher suite, for [tls.CipherSuiteName]; 0 before the
// handshake is over.
func (s *Session) CipherSuite() uint16 { return s.suite }

// Resumed tells that the client resumed a session, so that no certificate was
// presented.
func (s *Session) Resumed() bool { return s.resumed }
