package http2

import "encoding/binary"

// preface is what a client sends first (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Sizes of frames (RFC 9113, 4.1, 4.2).
const (
	frameHeader = 9
	// maxFrame is the largest payload in both directions: what every peer must
	// take, and what we advertise by saying nothing.
	maxFrame = 16384
)

// The types of frames (RFC 9113, 6).
const (
	frameData uint8 = iota
	frameHeaders
	framePriority
	frameReset
	frameSettings
	framePushPromise
	framePing
	frameGoAway
	frameWindowUpdate
	frameContinuation
)

// The flags of frames.
const (
	flagAck        uint8 = 0x1 // SETTINGS, PING
	flagEndStream  uint8 = 0x1 // DATA, HEADERS
	flagEndHeaders uint8 = 0x4 // HEADERS, CONTINUATION
	flagPadded     uint8 = 0x8 // DATA, HEADERS
	flagPriority   uint8 = 0x20
)

// The settings (RFC 9113, 6.5.2).
const (
	settingEnablePush    = 2
	settingMaxStreams    = 3
	settingInitialWindow = 4
	settingMaxFrame      = 5
	settingMaxHeaderList = 6
)

// frame is the header of a frame.
type frame struct {
	length int
	kind   uint8
	flags  uint8
	stream uint32
}

// parseFrame reads a frame's header; b has it whole.
func parseFrame(b []byte) frame {
	return frame{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   b[3],
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31), // 4.1: the reserved bit is ignored
	}
}

// appendFrame appends a frame's header.
func appendFrame(dst []byte, length int, kind, flags uint8, stream uint32) []byte {
	dst = append(dst, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(dst, stream)
}

// unpad returns what a padded frame carries (RFC 9113, 6.1), and false when
// there is more padding than frame.
func unpad(f frame, p []byte) ([]byte, bool) {
	if f.flags&flagPadded == 0 {
		return p, true
	}
	if len(p) == 0 || int(p[0]) >= len(p) {
		return nil, false
	}
	return p[1 : len(p)-int(p[0])], true
}
