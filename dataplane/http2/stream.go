package http2

import "github.com/headgate/headgate/dataplane/message"

// Stream is one request and its response on a connection. Its memory is the
// owner's: [Conn.Next] is given a Stream that is not in use, and takes it for the
// next request. After the stream was closed by both sides, or reset, the
// connection does not know it any more.
type Stream struct {
	// Owner is for the owner; the codec leaves it alone.
	Owner any

	id         uint32
	sendWindow int64 // what we may send; negative after a smaller setting (RFC 9113, 6.9.2)
	recvWindow int64 // what the client may send
	credit     int64 // was taken, and not told to the client
	wide       int64 // what Widen added
	left       int64 // of the declared length, or Unknown
	open       bool  // the connection knows it
	localEnd   bool  // we ended our side
	remoteEnd  bool  // the client ended its side
}

// ID returns the stream's number.
func (s *Stream) ID() uint32 { return s.id }

// Open tells that the connection knows the stream: neither was it reset nor
// have both sides ended.
func (s *Stream) Open() bool { return s.open }

// RemoteEnded tells that the client has ended its request.
func (s *Stream) RemoteEnded() bool { return s.remoteEnd }

// LocalEnded tells that the response was ended.
func (s *Stream) LocalEnded() bool { return s.localEnd }

func (s *Stream) begin(id uint32, sendWindow int64) {
	*s = Stream{Owner: s.Owner, id: id, sendWindow: sendWindow, recvWindow: FirstWindow, left: message.Unknown, open: true}
}

// resets are the streams that we reset lately. What the client sent to them
// before it knew is ignored (RFC 9113, 5.1).
type resets struct {
	ids       [64]uint32
	next      int
	forgotten uint32 // the highest one that fell out
}

func (r *resets) add(id uint32) {
	r.forgotten = max(r.forgotten, r.ids[r.next])
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
}

// has tells whether a stream was reset, or may have been.
func (r *resets) has(id uint32) bool {
	if id <= r.forgotten {
		return true
	}
	for _, x := range r.ids {
		if x == id {
			return true
		}
	}
	return false
}

// closeRemote notes that the client ended its side.
func (c *Conn) closeRemote(s *Stream) {
	s.remoteEnd = true
	if s.localEnd {
		c.forget(s)
		c.served()
	}
}

// closeLocal notes that we ended our side.
func (c *Conn) closeLocal(s *Stream) {
	s.localEnd = true
	if s.remoteEnd {
		c.forget(s)
		c.served()
	}
}

// served rewards a stream that came to its end.
func (c *Conn) served() {
	c.aborts.earn(1)
	c.idle.earn(earnServed)
}

// forget drops a stream.
func (c *Conn) forget(s *Stream) {
	if !s.open {
		return
	}
	s.open = false
	c.widened -= s.wide
	s.wide = 0
	delete(c.streams, s.id)
	if c.data == s {
		c.data = nil
	}
}
