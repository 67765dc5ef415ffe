package cases

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// head is the first part of a message exactly as it was on the wire.
type head struct {
	start  string
	fields []field
	raw    string
}

type field struct{ name, value string }

// values returns the values of all fields with the name, in order.
func (h *head) values(name string) []string {
	var vs []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			vs = append(vs, f.value)
		}
	}
	return vs
}

// get returns the values of the name joined by ", ".
func (h *head) get(name string) string { return strings.Join(h.values(name), ", ") }

// has tells if there is a field with the name.
func (h *head) has(name string) bool { return len(h.values(name)) > 0 }

// readHead reads a head strictly: lines end in CRLF, names are tokens directly
// before their colon, nothing is folded. What the gateway emits must pass.
func readHead(br *bufio.Reader) (*head, error) {
	h := &head{}
	var raw strings.Builder
	for {
		line, err := br.ReadString('\n')
		raw.WriteString(line)
		h.raw = raw.String()
		if err != nil {
			return h, err
		}
		if len(h.raw) > 1<<20 {
			return h, errors.New("head is longer than 1 MiB")
		}
		text, ok := strings.CutSuffix(line, "\r\n")
		if !ok {
			return h, fmt.Errorf("line %q does not end in CRLF", line)
		}
		if strings.ContainsAny(text, "\r\x00") {
			return h, fmt.Errorf("line %q has a bare CR or a NUL", line)
		}
		if h.start == "" {
			if text == "" {
				return h, errors.New("empty start line")
			}
			h.start = text
			continue
		}
		if text == "" {
			return h, nil
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return h, fmt.Errorf("bad field line %q", text)
		}
		h.fields = append(h.fields, field{name, strings.Trim(value, " \t")})
	}
}

// framing is how a body is delimited.
type framing int

const (
	noBody framing = iota
	byLength
	byChunks
	byClose
)

// bodyFraming reads a head's framing fields. It refuses what a gateway must
// never emit: both of them, or a list of lengths.
func (h *head) bodyFraming() (framing, int64, error) {
	te, cl := h.values("Transfer-Encoding"), h.values("Content-Length")
	switch {
	case len(te) > 0 && len(cl) > 0:
		return 0, 0, errors.New("both Transfer-Encoding and Content-Length")
	case len(te) > 1 || len(te) == 1 && !strings.EqualFold(te[0], "chunked"):
		return 0, 0, fmt.Errorf("transfer coding %q", te)
	case len(te) == 1:
		return byChunks, 0, nil
	case len(cl) > 1:
		return 0, 0, fmt.Errorf("content lengths %q", cl)
	case len(cl) == 1:
		n, err := strconv.ParseUint(cl[0], 10, 63)
		if err != nil || strings.Trim(cl[0], "0123456789") != "" {
			return 0, 0, fmt.Errorf("content length %q", cl[0])
		}
		return byLength, int64(n), nil
	}
	return noBody, 0, nil
}

// readChunks decodes a chunked body to w and returns its trailers.
func readChunks(br *bufio.Reader, w io.Writer) ([]field, error) {
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return nil, noEOF(err)
		}
		text, ok := strings.CutSuffix(line, "\r\n")
		if !ok {
			return nil, fmt.Errorf("chunk line %q does not end in CRLF", line)
		}
		size, _, _ := strings.Cut(text, ";")
		n, err := strconv.ParseUint(size, 16, 40)
		if err != nil {
			return nil, fmt.Errorf("chunk size %q", size)
		}
		if n == 0 {
			break
		}
		if _, err := io.CopyN(w, br, int64(n)); err != nil {
			return nil, noEOF(err)
		}
		var end [2]byte
		if _, err := io.ReadFull(br, end[:]); err != nil {
			return nil, noEOF(err)
		}
		if string(end[:]) != "\r\n" {
			return nil, fmt.Errorf("chunk data ends in %q", end)
		}
	}
	var trailers []field
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return nil, noEOF(err)
		}
		if line == "\r\n" {
			return trailers, nil
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ":")
		trailers = append(trailers, field{name, strings.Trim(value, " \t")})
	}
}

// request is one request as it reached a backend.
type request struct {
	head
	method, target, version string
	body                    []byte
	trailers                []field
}

// parseRequestHead splits a head's request line.
func parseRequestHead(h *head) (*request, error) {
	parts := strings.Split(h.start, " ")
	if len(parts) != 3 {
		return nil, fmt.Errorf("request line %q", h.start)
	}
	return &request{head: *h, method: parts[0], target: parts[1], version: parts[2]}, nil
}

// readBody reads the request's body to w.
func (r *request) readBody(br *bufio.Reader, w io.Writer) error {
	kind, n, err := r.bodyFraming()
	if err != nil {
		return err
	}
	switch kind {
	case byLength:
		_, err = io.CopyN(w, br, n)
		return noEOF(err)
	case byChunks:
		r.trailers, err = readChunks(br, w)
		return err
	}
	return nil
}

// parseRequests reads all whole requests of a byte stream. The error says why
// it stopped before the stream's end.
func parseRequests(stream []byte) ([]*request, error) {
	br := bufio.NewReader(bytes.NewReader(stream))
	var rs []*request
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return rs, nil
		}
		h, err := readHead(br)
		if err != nil {
			return rs, noEOF(err)
		}
		r, err := parseRequestHead(h)
		if err != nil {
			return rs, err
		}
		var body bytes.Buffer
		if err := r.readBody(br, &body); err != nil {
			return rs, err
		}
		r.body = body.Bytes()
		rs = append(rs, r)
	}
}

// response is one answer as a client got it.
type response struct {
	head
	status   int
	minor    string // "1.1" or "1.0"
	framing  framing
	body     []byte
	trailers []field
	interim  []*response // 1xx heads before it
	err      error       // why the body did not end well; nil when it did
}

// parseStatus fills the status line's parts.
func (r *response) parseStatus() error {
	version, rest, ok := strings.Cut(r.start, " ")
	minor, isHTTP := strings.CutPrefix(version, "HTTP/")
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if !ok || !isHTTP || err != nil || len(code) != 3 {
		return fmt.Errorf("status line %q", r.start)
	}
	r.status, r.minor = n, minor
	return nil
}

// readResponseHead reads one head, interim or final, and its framing.
func readResponseHead(br *bufio.Reader, method string) (*response, int64, error) {
	h, err := readHead(br)
	r := &response{head: *h}
	if err != nil {
		return r, 0, err
	}
	if err := r.parseStatus(); err != nil {
		return r, 0, err
	}
	kind, n, err := r.bodyFraming()
	if err != nil {
		return r, 0, err
	}
	bodyless := r.status < 200 || r.status == 204
	if bodyless && kind != noBody { // RFC 9110, 8.6; RFC 9112, 6.1
		return r, 0, fmt.Errorf("status %d with %q", r.status, r.raw)
	}
	switch {
	case bodyless || r.status == 304 || method == "HEAD":
		kind = noBody
	case kind == noBody:
		kind = byClose
	}
	r.framing = kind
	return r, n, nil
}

// readResponse reads a whole answer. It returns an error when no final head
// came; a body that ends badly is told in the response.
func readResponse(br *bufio.Reader, method string) (*response, error) {
	var interim []*response
	for {
		r, n, err := readResponseHead(br, method)
		if err != nil {
			return r, fmt.Errorf("after %q: %w", r.raw, err)
		}
		if r.status < 200 && r.status != 101 {
			interim = append(interim, r)
			continue
		}
		r.interim = interim
		var body bytes.Buffer
		switch r.framing {
		case byLength:
			_, err = io.CopyN(&body, br, n)
			r.err = noEOF(err)
		case byChunks:
			r.trailers, r.err = readChunks(br, &body)
		case byClose:
			_, r.err = io.Copy(&body, br)
		}
		r.body = body.Bytes()
		return r, nil
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
