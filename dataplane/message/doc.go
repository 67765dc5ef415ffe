// Package message holds what an exchange passes between its two sides: header
// blocks, requests, responses, and the error that says who is at fault. It is
// the same for every HTTP version: framing and hop-by-hop fields are the
// codecs' business and never appear in a [Headers].
//
// All byte slices in a message point into the message's own arena or into
// constants; [Request.Reset] and [Response.Reset] recycle them, so that a
// message in steady state is filled without allocating.
package message
