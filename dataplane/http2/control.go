package http2

import (
	"encoding/binary"

	"github.com/headgate/headgate/dataplane/http1"
)

// probe is what our PINGs carry.
const probe = "headgate"

// priorityFrame takes a PRIORITY frame, which says nothing any more (RFC 9113,
// 5.3.2, 6.3).
func (c *Conn) priorityFrame(f frame) (Event, *ConnError) {
	switch {
	case f.stream == 0:
		return Event{}, &ConnError{CodeProtocol, "priority_on_connection"}
	case f.length != 5:
		return Event{}, &ConnError{CodeFrameSize, "bad_priority_length"}
	}
	return Event{}, c.vain(1)
}

// resetFrame takes a RST_STREAM frame (RFC 9113, 6.4).
func (c *Conn) resetFrame(f frame, p []byte) (Event, *ConnError) {
	switch {
	case len(p) != 4:
		return Event{}, &ConnError{CodeFrameSize, "bad_reset_length"}
	case f.stream == 0:
		return Event{}, &ConnError{CodeProtocol, "reset_on_connection"}
	case f.stream > c.lastID:
		return Event{}, &ConnError{CodeProtocol, "reset_of_idle_stream"}
	}
	s := c.streams[f.stream]
	if s == nil {
		return Event{}, c.vain(1)
	}
	c.forget(s)
	return Event{Kind: Reset, Stream: s, Code: Code(binary.BigEndian.Uint32(p))}, c.aborted()
}

// settingsFrame takes a SETTINGS frame (RFC 9113, 6.5).
func (c *Conn) settingsFrame(f frame, p []byte) (Event, *ConnError) {
	switch {
	case f.stream != 0:
		return Event{}, &ConnError{CodeProtocol, "settings_on_stream"}
	case f.flags&flagAck != 0 && len(p) > 0, len(p)%6 != 0:
		return Event{}, &ConnError{CodeFrameSize, "bad_settings_length"}
	case f.flags&flagAck != 0:
		return Event{}, c.vain(1)
	}
	c.settled = true
	window := c.initialWindow
	for ; len(p) > 0; p = p[6:] {
		switch id, v := binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:]); id {
		case settingEnablePush:
			if v > 1 {
				return Event{}, &ConnError{CodeProtocol, "bad_enable_push"}
			}
		case settingInitialWindow:
			if v > maxWindow {
				return Event{}, &ConnError{CodeFlowControl, "bad_initial_window"}
			}
			window = int64(v)
		case settingMaxFrame:
			if v < maxFrame || v > 1<<24-1 {
				return Event{}, &ConnError{CodeProtocol, "bad_max_frame_size"}
			}
		}
	}
	ev, err := c.resize(window)
	if err != nil {
		return ev, err
	}
	c.Out = appendFrame(c.Out, 0, frameSettings, flagAck, 0)
	return ev, c.vain(costSettings)
}

// resize changes the windows of all streams (RFC 9113, 6.9.2).
func (c *Conn) resize(window int64) (Event, *ConnError) {
	more := window - c.initialWindow
	c.initialWindow = window
	if more == 0 {
		return Event{}, nil
	}
	for _, s := range c.streams {
		if s.sendWindow += more; s.sendWindow > maxWindow {
			return Event{}, &ConnError{CodeFlowControl, "window_overflow"}
		}
	}
	if more < 0 {
		return Event{}, nil
	}
	return Event{Kind: Window}, nil
}

// pingFrame takes a PING frame (RFC 9113, 6.7).
func (c *Conn) pingFrame(f frame, p []byte) (Event, *ConnError) {
	switch {
	case f.stream != 0:
		return Event{}, &ConnError{CodeProtocol, "ping_on_stream"}
	case len(p) != 8:
		return Event{}, &ConnError{CodeFrameSize, "bad_ping_length"}
	case f.flags&flagAck == 0:
		c.Out = append(appendFrame(c.Out, 8, framePing, flagAck, 0), p...)
	case string(p) == probe:
		return Event{Kind: Pong}, c.vain(1)
	}
	return Event{}, c.vain(costPing)
}

// windowFrame takes a WINDOW_UPDATE frame (RFC 9113, 6.9).
func (c *Conn) windowFrame(f frame, p []byte) (Event, *ConnError) {
	if len(p) != 4 {
		return Event{}, &ConnError{CodeFrameSize, "bad_window_update_length"}
	}
	more := int64(binary.BigEndian.Uint32(p) &^ (1 << 31))
	if f.stream == 0 {
		switch c.sendWindow += more; {
		case more == 0:
			return Event{}, &ConnError{CodeProtocol, "empty_window_update"}
		case c.sendWindow > maxWindow:
			return Event{}, &ConnError{CodeFlowControl, "window_overflow"} // 6.9.1
		}
		return Event{Kind: Window}, c.vain(1)
	}
	s := c.streams[f.stream]
	switch {
	case s == nil && f.stream > c.lastID:
		return Event{}, &ConnError{CodeProtocol, "window_update_on_idle_stream"}
	case s == nil:
		return Event{}, c.vain(1) // 5.1: it may have crossed our end
	case more == 0:
		return c.spoilt(s, CodeProtocol, errMalformed("empty_window_update", "a WINDOW_UPDATE of nothing"))
	case s.sendWindow+more > maxWindow:
		return c.spoilt(s, CodeFlowControl, errMalformed("window_overflow", "a window above 2^31-1"))
	}
	s.sendWindow += more
	return Event{Kind: Window, Stream: s}, c.vain(1)
}

// lastServed is the last stream that we took up, for GOAWAY.
func (c *Conn) lastServed() uint32 { return min(c.lastID, c.goAwayID) }

// Warn tells the client that the connection will end soon, without refusing a
// stream that may be on its way (RFC 9113, 6.8); Leave is to follow, when the
// answer to the PING says that the client knows.
func (c *Conn) Warn() {
	c.Out = appendGoAway(c.Out, maxWindow, CodeNone, "")
	c.Out = append(appendFrame(c.Out, 8, framePing, 0, 0), probe...)
}

// Leave tells the client that no further streams are served.
func (c *Conn) Leave() {
	c.goAwayID = c.lastServed()
	c.Out = appendGoAway(c.Out, c.goAwayID, CodeNone, "")
}

func appendSettings(dst []byte, l *http1.Limits) []byte {
	settings := [...]struct {
		id    uint16
		value uint32
	}{
		{settingMaxStreams, MaxStreams},
		{settingInitialWindow, FirstWindow},
		{settingMaxHeaderList, uint32(l.MaxHeaderBytes())},
	}
	dst = appendFrame(dst, 6*len(settings), frameSettings, 0, 0)
	for _, s := range settings {
		dst = appendSetting(dst, s.id, s.value)
	}
	return dst
}

func appendSetting(dst []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, id), value)
}

func appendWindowUpdate(dst []byte, stream, more uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(dst, 4, frameWindowUpdate, 0, stream), more)
}

func appendGoAway(dst []byte, last uint32, code Code, debug string) []byte {
	dst = appendFrame(dst, 8+len(debug), frameGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, last)
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, debug...)
}
