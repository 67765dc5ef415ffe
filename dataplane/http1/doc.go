// Package http1 is the HTTP/1.x codec: bytes to events, and messages to bytes.
// It does no I/O and keeps no input. [RequestParser] reads what clients send and
// is strict; [ResponseParser] reads what upstreams send and is lenient where
// leniency is harmless. The Append functions write heads and chunks.
//
// A parser is pulled: call Next in a loop until it returns [None], each time
// with what it has not consumed yet. Framing and hop-by-hop fields are decided
// here and never reach a [message.Headers]. DESIGN.md lists every decision.
package http1
