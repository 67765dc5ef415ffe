package http1

import (
	"errors"

	"github.com/headgate/headgate/dataplane/message"
)

// fault is a way in which input can be wrong. The status is for a client; an
// upstream's fault is always a 502.
type fault struct {
	status int
	reason string // for logs and metrics
	text   string
}

// The faults of start lines.
var (
	faultEmptyLines       = &fault{400, "too_many_empty_lines", "too many empty lines before the request"}
	faultRequestLineLong  = &fault{414, "request_line_too_long", "the request line is too long"}
	faultRequestLine      = &fault{400, "bad_request_line", "the request line is not method, target and version"}
	faultMethod           = &fault{400, "bad_method", "the method is not a token"}
	faultMethodLong       = &fault{501, "method_too_long", "the method is longer than any known one"}
	faultVersion          = &fault{400, "bad_version", "the HTTP version is malformed"}
	faultVersionOther     = &fault{505, "unsupported_version", "the HTTP version is not 1.0 or 1.1"}
	faultPreface          = &fault{505, "http2_preface", "HTTP/2 with prior knowledge on a connection for HTTP/1.1"}
	faultConnect          = &fault{501, "connect_not_supported", "CONNECT is not supported"}
	faultTarget           = &fault{400, "bad_target", "the request target has a form that is not allowed"}
	faultTargetByte       = &fault{400, "bad_target_byte", "the request target has a byte that is not allowed"}
	faultFragment         = &fault{400, "fragment_in_target", "the request target has a fragment"}
	faultScheme           = &fault{400, "bad_target_scheme", "the request target's scheme is not http or https"}
	faultUserinfo         = &fault{400, "userinfo_in_target", "the request target has user information"}
	faultAuthority        = &fault{400, "bad_target_authority", "the request target's authority is invalid"}
	faultStatusLine       = &fault{502, "bad_status_line", "the status line is malformed"}
	faultStatusLineLong   = &fault{502, "status_line_too_long", "the status line is too long"}
	faultResponseVersion  = &fault{502, "bad_response_version", "the response is not HTTP/1.0 or HTTP/1.1"}
	faultInterim          = &fault{502, "too_many_interim_responses", "too many 1xx responses before the final one"}
	faultSwitching        = &fault{502, "bad_switching_protocols", "a 101 response does not name its protocol"}
	faultNoResponse       = &fault{502, "no_response", "the connection was closed before a response"}
	faultTruncatedHead    = &fault{502, "truncated_head", "the connection was closed inside a response head"}
	faultTruncatedBody    = &fault{502, "truncated_body", "the connection was closed inside a response body"}
	faultHeadersLarge     = &fault{431, "headers_too_large", "the header block is too large"}
	faultHeadersMany      = &fault{431, "too_many_headers", "the header block has too many fields"}
	faultBareLF           = &fault{400, "bare_lf", "a line ends with LF instead of CRLF"}
	faultBareCR           = &fault{400, "bare_cr", "a CR is not followed by LF"}
	faultNUL              = &fault{400, "nul_byte", "a line has a NUL byte"}
	faultObsFold          = &fault{400, "obs_fold", "a field line starts with white space"}
	faultSpaceBeforeColon = &fault{400, "space_before_colon", "white space stands between a field name and its colon"}
	faultNoColon          = &fault{400, "missing_colon", "a field line has no colon"}
	faultHeaderName       = &fault{400, "bad_header_name", "a field name is not a token"}
	faultHeaderValue      = &fault{400, "bad_header_value", "a field value has a control character"}
)

// The faults of fields that the codec interprets.
var (
	faultHostMissing       = &fault{400, "missing_host", "a request of HTTP/1.1 has no Host"}
	faultHostDuplicate     = &fault{400, "duplicate_host", "the request has more than one Host"}
	faultHost              = &fault{400, "bad_host", "the Host is invalid"}
	faultLength            = &fault{400, "bad_content_length", "the Content-Length is not a decimal number"}
	faultLengthLarge       = &fault{400, "content_length_overflow", "the Content-Length is too large"}
	faultLengthDuplicate   = &fault{400, "duplicate_content_length", "the request has more than one Content-Length"}
	faultLengthConflict    = &fault{400, "conflicting_content_length", "the Content-Lengths differ"}
	faultLengthAndTransfer = &fault{400, "length_and_transfer_encoding", "Content-Length and Transfer-Encoding together"}
	faultTransfer          = &fault{400, "bad_transfer_encoding", "the Transfer-Encoding is malformed"}
	faultTransferFinal     = &fault{400, "chunked_not_final", "the final transfer coding is not chunked"}
	faultTransferCoding    = &fault{501, "unsupported_transfer_coding", "a transfer coding other than chunked"}
	faultTransferVersion   = &fault{400, "transfer_encoding_in_http10", "Transfer-Encoding in a message of HTTP/1.0"}
	faultExpect            = &fault{417, "unknown_expectation", "the expectation is not 100-continue"}
	faultConnection        = &fault{400, "too_many_connection_options", "too many options in Connection"}
)

// The faults of chunked bodies.
var (
	faultChunkSize     = &fault{400, "bad_chunk_size", "a chunk's size is not a hexadecimal number"}
	faultChunkOverflow = &fault{400, "chunk_size_overflow", "a chunk's size is too large"}
	faultChunkLine     = &fault{400, "chunk_line_too_long", "a chunk's extensions are too long"}
	faultChunkExt      = &fault{400, "bad_chunk_extension", "a chunk's extension is malformed"}
	faultChunkOverhead = &fault{400, "chunk_overhead", "the chunk extensions outweigh the data"}
	faultChunkEnd      = &fault{400, "bad_chunk_end", "a chunk's data is not followed by CRLF"}
	faultTrailersLarge = &fault{431, "trailers_too_large", "the trailer section is too large"}
	faultTrailersMany  = &fault{431, "too_many_trailers", "the trailer section has too many fields"}
)

func (f *fault) ofClient() *message.RequestError {
	return &message.RequestError{Origin: message.Client, Status: f.status, Reason: f.reason, Err: errors.New(f.text)}
}

func (f *fault) ofUpstream() *message.RequestError {
	return &message.RequestError{Origin: message.Upstream, Status: 502, Reason: f.reason, Err: errors.New(f.text)}
}
