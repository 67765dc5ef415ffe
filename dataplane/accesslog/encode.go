package accesslog

import (
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"
)

// The longest texts that are logged whole, in bytes. What comes from the network
// is bounded here, so that no client decides how large a line is.
const (
	maxShort = 128  // ids, methods, versions, names
	maxName  = 512  // hosts, objects, addresses, user agents
	maxPath  = 2048 // paths, queries, referers
)

const (
	fixedBytes = 640 // keys, numbers and punctuation of a line that has every field
	escaped    = 6   // bytes of the longest form of one byte: \u00ff
	cutMark    = "\u2026"
	hexDigits  = "0123456789abcdef"
)

// plain tells which bytes stand for themselves whatever follows.
var plain = func() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// lineBound returns a number of bytes that the line of e never exceeds.
func lineBound(e *Entry) int {
	texts := min(len(e.RequestID), maxShort) + min(len(e.Method), maxShort) + min(len(e.Host), maxName) +
		min(len(e.Path), maxPath) + min(len(e.Query), maxPath) + min(len(e.Protocol), maxShort) +
		min(len(e.UserAgent), maxName) + min(len(e.Referer), maxPath) + min(len(e.Listener), maxName) +
		min(len(e.Route), maxName) + min(len(e.Cluster), maxName) + min(len(e.Upstream), maxName) +
		min(len(e.Origin), maxShort) + min(len(e.Reason), maxShort) + min(len(e.TLS), maxShort) +
		min(len(e.SNI), maxName)
	return fixedBytes + maxShort*escaped + texts*escaped // maxShort: the client's address with its zone
}

// appendLine appends the line of e. stamp is the time, already formatted.
func appendLine(dst, stamp []byte, e *Entry) []byte {
	dst = append(dst, `{"time":"`...)
	dst = append(dst, stamp...)
	dst = append(dst, '"')
	dst = appendOptional(dst, `,"request_id":`, e.RequestID, maxShort)
	dst = appendClient(dst, e.Client)
	dst = appendText(append(dst, `,"method":`...), e.Method, maxShort)
	dst = appendText(append(dst, `,"host":`...), e.Host, maxName)
	dst = appendText(append(dst, `,"path":`...), e.Path, maxPath)
	dst = appendOptional(dst, `,"query":`, e.Query, maxPath)
	dst = appendText(append(dst, `,"protocol":`...), e.Protocol, maxShort)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(e.Status), 10)
	dst = strconv.AppendInt(append(dst, `,"bytes_in":`...), e.BytesIn, 10)
	dst = strconv.AppendInt(append(dst, `,"bytes_out":`...), e.BytesOut, 10)
	dst = appendMillis(append(dst, `,"duration_ms":`...), e.Duration)
	dst = appendOptional(dst, `,"listener":`, e.Listener, maxName)
	dst = appendOptional(dst, `,"route":`, e.Route, maxName)
	dst = appendOptional(dst, `,"cluster":`, e.Cluster, maxName)
	if e.Upstream != "" {
		dst = appendText(append(dst, `,"upstream":`...), e.Upstream, maxName)
		dst = appendMillis(append(dst, `,"upstream_ms":`...), e.UpstreamDuration)
	}
	dst = appendOptional(dst, `,"origin":`, e.Origin, maxShort)
	dst = appendOptional(dst, `,"reason":`, e.Reason, maxShort)
	dst = appendOptional(dst, `,"tls":`, e.TLS, maxShort)
	dst = appendOptional(dst, `,"sni":`, e.SNI, maxName)
	dst = appendOptional(dst, `,"user_agent":`, e.UserAgent, maxName)
	dst = appendOptional(dst, `,"referer":`, e.Referer, maxPath)
	return append(dst, "}\n"...)
}

// appendClient appends the client's address and port.
func appendClient(dst []byte, c netip.AddrPort) []byte {
	if !c.Addr().IsValid() {
		return dst
	}
	var text [maxShort]byte // on the stack; an address with a usual zone fits
	dst = appendText(append(dst, `,"client":`...), c.Addr().Unmap().AppendTo(text[:0]), maxShort)
	if c.Port() != 0 {
		dst = strconv.AppendUint(append(dst, `,"client_port":`...), uint64(c.Port()), 10)
	}
	return dst
}

// appendMillis appends d as milliseconds with three decimals.
func appendMillis(dst []byte, d time.Duration) []byte {
	us := max(d, 0).Microseconds()
	dst = strconv.AppendInt(dst, us/1000, 10)
	us %= 1000
	return append(dst, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
}

// appendOptional appends key and text unless text is empty.
func appendOptional[T string | []byte](dst []byte, key string, text T, limit int) []byte {
	if len(text) == 0 {
		return dst
	}
	return appendText(append(dst, key...), text, limit)
}

// appendText appends text as a JSON string (RFC 8259, 7). Text of more than limit
// bytes is cut and ends in an ellipsis. Bytes that are not UTF-8 become \ufffd.
// Beyond what JSON asks for, all control characters (C1 and DEL too) are escaped:
// a line must not drive the terminal that shows it; and U+2028 and U+2029, which
// some readers take for the end of a line.
func appendText[T string | []byte](dst []byte, text T, limit int) []byte {
	cut := len(text) > limit
	if cut {
		limit -= len(cutMark)
		for n := 0; n < utf8.UTFMax-1 && limit > 0 && !utf8.RuneStart(text[limit]); n++ {
			limit--
		}
		text = text[:limit]
	}
	dst = append(dst, '"')
	start := 0 // of what is not yet appended
	for i := 0; i < len(text); {
		c := text[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, text[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		var next [utf8.UTFMax]byte
		r, size := utf8.DecodeRune(next[:copy(next[:], text[i:])])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, text[start:i]...), `\ufffd`...)
		case r < 0xa0: // C1
			dst = append(append(dst, text[start:i]...), '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
		case r == '\u2028':
			dst = append(append(dst, text[start:i]...), `\u2028`...)
		case r == '\u2029':
			dst = append(append(dst, text[start:i]...), `\u2029`...)
		default:
			i += size
			continue
		}
		i += size
		start = i
	}
	dst = append(dst, text[start:]...)
	if cut {
		dst = append(dst, cutMark...)
	}
	return append(dst, '"')
}

// appendEscape appends the escaped form of an ASCII byte.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
