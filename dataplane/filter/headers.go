package filter

import (
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
)

// headers sets, adds and removes fields. Names and values live as long as the
// snapshot, so they are used without a copy.
type headers struct {
	set, add []message.Field
	remove   []string
}

func newHeaders(c *ir.HeaderChange) headers {
	fields := func(list []ir.Header) []message.Field {
		out := make([]message.Field, len(list))
		for i, h := range list {
			out[i] = message.Field{Name: []byte(h.Name), Value: []byte(h.Value)}
		}
		return out
	}
	return headers{set: fields(c.Set), add: fields(c.Add), remove: c.Remove}
}

func (f *headers) apply(h *message.Headers) {
	for _, s := range f.set {
		h.Replace(s)
	}
	for _, a := range f.add {
		h.Append(a.Name, a.Value)
	}
	for _, name := range f.remove {
		h.Del(name)
	}
}

// requestHeaders changes a request's fields.
type requestHeaders struct{ headers }

func (f requestHeaders) Request(x *Exchange) bool {
	f.apply(&x.Request.Headers)
	return true
}

// responseHeaders changes a response's fields.
type responseHeaders struct{ headers }

func (f responseHeaders) Response(r *message.Response) { f.apply(&r.Headers) }
