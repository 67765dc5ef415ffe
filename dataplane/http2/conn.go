package http2

import (
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/http1"
	"github.com/headgate/headgate/dataplane/message"
)

// What we tell a client that it may do.
const (
	// MaxStreams is how many requests one connection may have under way.
	MaxStreams = 100
	// FirstWindow is what a client may send of one body before the first of it
	// was passed on.
	FirstWindow = 64 << 10
	// wideWindow is the same for a body that flows, see Conn.Widen.
	wideWindow = 256 << 10
	// maxWidened bounds what all streams together have above FirstWindow.
	maxWidened = 8 * (wideWindow - FirstWindow)
	// connWindow bounds what is on its way of all bodies together. It is given
	// back as soon as something arrives: streams must not hold each other up.
	connWindow = 1 << 20
)

// Windows of the peer (RFC 9113, 6.9.1, 6.9.2).
const (
	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
)

// What a client may do in vain. Both come back with time: see allowance.
const (
	// A request that its client resets, or spoils, before it is answered costs an
	// upstream as much as one that is read ("rapid reset", CVE-2023-44487;
	// "made you reset", CVE-2025-8671).
	abortBurst, abortRate = 500, 33
	// Frames that serve nobody. A DATA frame of ours earns up to 4 of them back, so
	// that a client may update its windows for each; a small one does not, or
	// windows could be opened byte by byte ("data dribble", CVE-2019-9511).
	idleBurst, idleRate = 10000, 330
	costSettings        = 20
	costPing            = 10
	costRefused         = 10
	earnServed          = 2 // for a request that comes to its end
	mostEarned          = 4
	earnPer             = 512 // bytes
	// maxHeadFrames is how many frames a head may have ("CONTINUATION flood").
	maxHeadFrames = 64
)

// Kind is what an [Event] is about.
type Kind uint8

// The events.
const (
	None   Kind = iota // more input is needed
	Head               // a request's head is complete; the given Stream and Request are filled
	Data               // a piece of a request's body
	End                // the request is over; Trailers may be set
	Reset              // the stream was reset
	Window             // there is more room for answers
	GoAway             // the client opens no further streams
	Pong               // the client answered the PING of Probe
)

// Event is what Next has found.
type Event struct {
	Kind Kind
	// Stream is the one that the event is about. Of a Window, nil means all. Of a
	// Reset, nil means one that the owner has not heard of.
	Stream *Stream
	// Data is a part of the input.
	Data []byte
	// Last says with Head and Data that the request ends with them: no End
	// follows.
	Last bool
	// Trailers live until the next call.
	Trailers *message.Headers
	// Err says with Head how the request is to be answered: it was understood,
	// and is refused. With Reset it says what the client did wrong; nil means
	// that the client reset the stream, with Code.
	Err  error
	Code Code
}

// Conn is one connection with a client. It belongs to the connection's loop.
type Conn struct {
	// Out is what is to be sent. All methods append to it. The owner sends and
	// empties it before it sends anything else.
	Out []byte

	limits  *http1.Limits
	decoder *hpack.Decoder
	streams map[uint32]*Stream
	resets  resets
	now     time.Time
	aborts  allowance
	idle    allowance
	err     *ConnError

	sendWindow    int64 // of the connection
	recvWindow    int64
	credit        int64 // arrived, and not told to the client
	initialWindow int64 // of the streams to come, as the client wants it
	widened       int64 // what the streams have above FirstWindow
	lastID        uint32
	goAwayID      uint32 // streams above it are not served any more

	// The DATA frame that is being read.
	data     *Stream // nil when nobody wants it
	dataLeft int
	padLeft  int
	dataEnd  bool

	head assembly

	greeted   bool // the preface has come
	settled   bool // the first SETTINGS has come
	tableTold bool // the client knows that we use no dynamic table
}

// New returns the codec of a new connection. Out has our side's preface. Limits
// must not change as long as the connection has them; nil means the defaults.
func New(l *http1.Limits) *Conn {
	if l == nil {
		l = &http1.Limits{}
	}
	c := &Conn{
		limits:        l,
		streams:       map[uint32]*Stream{},
		aborts:        newAllowance(abortBurst, abortRate),
		idle:          newAllowance(idleBurst, idleRate),
		sendWindow:    defaultWindow,
		recvWindow:    connWindow,
		initialWindow: defaultWindow,
		goAwayID:      maxWindow,
	}
	c.head.conn = c
	// RFC 7541, 4.2: without a word from us the table has 4,096 bytes.
	c.decoder = hpack.NewDecoder(4096, c.head.field)
	c.decoder.SetMaxStringLength(c.maxBlock())
	c.Out = appendSettings(c.Out, l)
	c.Out = appendWindowUpdate(c.Out, 0, connWindow-defaultWindow)
	return c
}

// SetLimits bounds the heads to come by other limits, and tells the client of
// them. In the middle of a head it does nothing: it is to be called again.
func (c *Conn) SetLimits(l *http1.Limits) {
	if c.head.stream != 0 {
		return
	}
	if *c.limits == *l {
		c.limits = l // the old ones may go
		return
	}
	was := c.limits.MaxHeaderBytes()
	c.limits = l
	if size := l.MaxHeaderBytes(); size != was {
		c.decoder.SetMaxStringLength(c.maxBlock())
		c.Out = appendSetting(appendFrame(c.Out, 6, frameSettings, 0, 0), settingMaxHeaderList, uint32(size))
	}
}

// maxBlock is the longest compressed head.
func (c *Conn) maxBlock() int { return 2 * c.limits.MaxHeaderBytes() }

// Streams returns how many streams are open.
func (c *Conn) Streams() int { return len(c.streams) }

// Pending tells that the client is in the middle of its preface or of a head:
// the next bytes are overdue.
func (c *Conn) Pending() bool { return !c.settled || c.head.stream != 0 }

// Next consumes n bytes of b and returns one event. With None, more input is
// needed than b[n:], which is to be presented again; it is shorter than a frame
// of 16 KiB. s and req are for the next head: when the event is Head, they have
// been taken, else they are to be given again.
//
// An error is a *[ConnError]; it is final. Out has the GOAWAY.
func (c *Conn) Next(now time.Time, s *Stream, req *message.Request, b []byte) (n int, ev Event, err error) {
	c.now = now
	for c.err == nil {
		used, ev, fault := c.step(s, req, b[n:])
		n += used
		if fault != nil {
			c.fail(fault)
			break
		}
		if ev.Kind != None || used == 0 {
			return n, ev, nil
		}
	}
	return len(b), Event{}, c.err
}

// fail ends the connection (RFC 9113, 5.4.1).
func (c *Conn) fail(err *ConnError) {
	c.err = err
	c.Out = appendGoAway(c.Out, c.lastServed(), err.Code, err.Reason)
}

// step takes one frame, or a piece of a DATA frame. It returns 0 and None when
// there is too little input.
func (c *Conn) step(s *Stream, req *message.Request, b []byte) (int, Event, *ConnError) {
	if c.dataLeft > 0 || c.padLeft > 0 {
		n, ev := c.payload(b)
		return n, ev, nil
	}
	if !c.greeted {
		return c.greet(b)
	}
	if len(b) < frameHeader {
		return 0, Event{}, nil
	}
	f := parseFrame(b)
	switch {
	case f.length > maxFrame:
		return 0, Event{}, &ConnError{CodeFrameSize, "frame_too_large"} // 4.2
	case !c.settled && (f.kind != frameSettings || f.flags&flagAck != 0):
		return 0, Event{}, &ConnError{CodeProtocol, "no_settings"} // 3.4
	case c.head.stream != 0 && (f.kind != frameContinuation || f.stream != c.head.stream):
		return 0, Event{}, &ConnError{CodeProtocol, "interrupted_head"} // 6.2, 6.10
	case f.kind == frameData:
		return c.dataFrame(f, b[frameHeader:])
	case len(b) < frameHeader+f.length:
		return 0, Event{}, nil
	}
	n := frameHeader + f.length
	ev, err := c.frame(f, b[frameHeader:n], s, req)
	return n, ev, err
}

// greet takes the client's preface (RFC 9113, 3.4).
func (c *Conn) greet(b []byte) (int, Event, *ConnError) {
	n := min(len(b), len(preface))
	if string(b[:n]) != preface[:n] {
		return 0, Event{}, &ConnError{CodeProtocol, "bad_preface"}
	}
	if n < len(preface) {
		return 0, Event{}, nil
	}
	c.greeted = true
	return n, Event{}, nil
}

// frame takes a frame that is complete.
func (c *Conn) frame(f frame, p []byte, s *Stream, req *message.Request) (Event, *ConnError) {
	switch f.kind {
	case frameHeaders:
		return c.headersFrame(f, p, s, req)
	case frameContinuation:
		return c.continuationFrame(f, p, s, req)
	case framePriority:
		return c.priorityFrame(f)
	case frameReset:
		return c.resetFrame(f, p)
	case frameSettings:
		return c.settingsFrame(f, p)
	case framePushPromise:
		return Event{}, &ConnError{CodeProtocol, "push_promise_from_client"} // 8.4
	case framePing:
		return c.pingFrame(f, p)
	case frameGoAway:
		if f.stream != 0 {
			return Event{}, &ConnError{CodeProtocol, "goaway_on_stream"}
		}
		if len(p) < 8 {
			return Event{}, &ConnError{CodeFrameSize, "bad_goaway_length"}
		}
		return Event{Kind: GoAway}, c.vain(1)
	case frameWindowUpdate:
		return c.windowFrame(f, p)
	}
	return Event{}, c.vain(1) // 4.1, 5.5: frames of unknown types are ignored
}

// vain charges the client for a frame that served nobody.
func (c *Conn) vain(cost float64) *ConnError {
	if !c.idle.use(c.now, cost) {
		return &ConnError{CodeEnhanceYourCalm, "frame_flood"}
	}
	return nil
}

// aborted charges the client for a request that came to nothing.
func (c *Conn) aborted() *ConnError {
	if !c.aborts.use(c.now, 1) {
		return &ConnError{CodeEnhanceYourCalm, "reset_flood"}
	}
	return nil
}

// spoilt resets a stream because of what its client did (RFC 9113, 5.4.2).
func (c *Conn) spoilt(s *Stream, code Code, err error) (Event, *ConnError) {
	c.Reset(s, code)
	return Event{Kind: Reset, Stream: s, Err: err, Code: code}, c.aborted()
}

// ignored tells whether frames on a stream that is not open are ignored, or are
// an error (RFC 9113, 5.1).
func (c *Conn) ignored(id uint32) bool { return id > c.goAwayID || c.resets.has(id) }

// closed answers a frame on a stream that is not open.
func (c *Conn) closed(id uint32) *ConnError {
	switch {
	case id > c.lastID:
		return &ConnError{CodeProtocol, "frame_on_idle_stream"} // 5.1
	case c.ignored(id):
		return c.vain(1)
	}
	return &ConnError{CodeStreamClosed, "frame_on_closed_stream"} // 5.1
}
