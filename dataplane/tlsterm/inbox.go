package tlsterm

// Record layer (RFC 8446, 5.1; RFC 5246, 6.2.1).
const (
	recordHeader    = 5
	recordHandshake = 22
	maxRecord       = 16384 + 2048 // TLS 1.2's, the larger one
)

// inbox is the ciphertext that has arrived and that crypto/tls has not taken.
// It shows crypto/tls whole records only, one at a time. So crypto/tls never
// makes room for a record that has not come, and its buffer never holds more
// than the largest record that did.
type inbox struct {
	pools *pools
	buf   *buffer // nil when empty
	off   int     // buf.b[off:] is unread
	shown int     // unread bytes of the record that is being taken
}

func (in *inbox) len() int {
	if in.buf == nil {
		return 0
	}
	return len(in.buf.b) - in.off
}

// feed copies p behind what is there.
func (in *inbox) feed(p []byte) {
	if len(p) == 0 {
		return
	}
	if in.off > 0 && cap(in.buf.b)-len(in.buf.b) < len(p) {
		n := copy(in.buf.b, in.buf.b[in.off:])
		in.buf.b, in.off = in.buf.b[:n], 0
	}
	in.buf = in.pools.grow(in.buf, len(p))
	in.buf.b = append(in.buf.b, p...)
}

// ready tells whether there is something to take.
func (in *inbox) ready() bool {
	if in.shown > 0 {
		return true
	}
	n := in.len()
	if n < recordHeader {
		return false
	}
	h := in.buf.b[in.off:]
	size := int(h[3])<<8 | int(h[4])
	if size > maxRecord {
		// Never waited for: crypto/tls refuses it by its header.
		in.shown = recordHeader
		return true
	}
	if n < recordHeader+size {
		return false
	}
	in.shown = recordHeader + size
	return true
}

// take copies what is ready to p and returns its length, 0 when nothing is.
func (in *inbox) take(p []byte) int {
	if !in.ready() {
		return 0
	}
	n := copy(p[:min(len(p), in.shown)], in.buf.b[in.off:])
	in.off += n
	in.shown -= n
	if in.off == len(in.buf.b) {
		in.release()
	}
	return n
}

// settle moves the rest, part of a record, to the smallest buffer: it may stay
// for long.
func (in *inbox) settle() {
	n := in.len()
	if n == 0 || in.off == 0 {
		return
	}
	small := in.pools.get(n)
	small.b = append(small.b, in.buf.b[in.off:]...)
	in.pools.put(in.buf)
	in.buf, in.off = small, 0
}

// release drops everything.
func (in *inbox) release() {
	if in.buf != nil {
		in.pools.put(in.buf)
	}
	in.buf, in.off, in.shown = nil, 0, 0
}
