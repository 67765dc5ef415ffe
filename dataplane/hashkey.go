package dataplane

import (
	"bytes"

	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/upstream"
)

// hashKey returns what chooses the endpoint when the cluster has a consistent
// hash, and false when it has none or the request has no key.
func (ex *exchange) hashKey() (key uint64, ok bool) {
	on, hashed := ex.backend.cluster.HashOn()
	if !hashed {
		return 0, false
	}
	h := &ex.request.Headers
	var value []byte
	switch on.Kind {
	case ir.HashClient:
		value, _, _ = bytes.Cut(h.Get(headerForwardedFor), []byte(","))
		value = bytes.TrimSpace(value)
	case ir.HashHeader:
		value = h.Get(on.Name)
	case ir.HashCookie:
		for i := h.Index("Cookie", 0); i >= 0 && value == nil; i = h.Index("Cookie", i+1) {
			value = cookie(h.Fields()[i].Value, on.Name)
		}
	}
	if len(value) == 0 {
		return 0, false
	}
	return upstream.Key(value), true
}

// cookie returns the value of a cookie in a Cookie field (RFC 6265, 4.2.1), nil
// when it is not there. Names are case-sensitive.
func cookie(field []byte, name string) []byte {
	for len(field) > 0 {
		var pair []byte
		pair, field, _ = bytes.Cut(field, []byte(";"))
		key, value, found := bytes.Cut(bytes.Trim(pair, " \t"), []byte("="))
		if found && string(key) == name {
			return value
		}
	}
	return nil
}
