package route

import (
	"bytes"
	"hash/maphash"
	"strings"
)

// maxHostLength is the longest host name there is (RFC 1035, 2.3.4, in text
// form). It bounds the work that a long Host with many dots can cause.
const maxHostLength = 253

// hosts is a persistent map from hostnames ("", "*.example.com",
// "www.example.com") to V, searched by host. It is a value: a copy is a copy
// of the map.
type hosts[V any] struct {
	exact hash[*V]
	wild  hash[*V] // by what follows "*."
	any   *V       // of the hostname ""
}

// get returns the value of a hostname, or nil.
func (h *hosts[V]) get(seed maphash.Seed, hostname string) *V {
	if hostname == "" {
		return h.any
	}
	if suffix, ok := strings.CutPrefix(hostname, "*."); ok {
		v, _ := h.wild.get(seed, []byte(suffix))
		return v
	}
	v, _ := h.exact.get(seed, []byte(hostname))
	return v
}

// set sets the value of a hostname on behalf of the transaction owner; nil
// removes it.
func (h *hosts[V]) set(owner uint64, seed maphash.Seed, hostname string, v *V) {
	if hostname == "" {
		h.any = v
		return
	}
	table, key := &h.exact, hostname
	if suffix, ok := strings.CutPrefix(hostname, "*."); ok {
		table, key = &h.wild, suffix
	}
	if v == nil {
		table.del(owner, seed, key)
		return
	}
	table.set(owner, seed, key, v)
}

// each calls visit with every value, in no order.
func (h *hosts[V]) each(visit func(*V)) {
	for _, v := range h.exact.all() {
		visit(v)
	}
	for _, v := range h.wild.all() {
		visit(v)
	}
	if h.any != nil {
		visit(h.any)
	}
}

// walk returns a hostWalk over the values whose hostnames match host.
func (h *hosts[V]) walk(seed maphash.Seed, host []byte) hostWalk[V] {
	return hostWalk[V]{hosts: h, seed: seed, rest: host}
}

// hostWalk yields the values that match a host, the most specific first: the
// exact hostname, then wildcards from the longest to the shortest, then "".
type hostWalk[V any] struct {
	hosts *hosts[V]
	seed  maphash.Seed
	rest  []byte // the host, then what is left of it behind a dot
	stage uint8
}

// next returns the next value, or nil when there is none.
func (w *hostWalk[V]) next() *V {
	const exact, wild, any, end = 0, 1, 2, 3
	if w.stage == exact {
		w.stage = wild
		if v, ok := w.hosts.exact.get(w.seed, w.rest); ok {
			return v
		}
	}
	if w.stage == wild {
		for w.hosts.wild.len > 0 && len(w.rest) <= maxHostLength {
			dot := bytes.IndexByte(w.rest, '.')
			if dot < 0 {
				break
			}
			w.rest = w.rest[dot+1:]
			if v, ok := w.hosts.wild.get(w.seed, w.rest); ok {
				return v
			}
		}
		w.stage = any
	}
	if w.stage == any {
		w.stage = end
		return w.hosts.any
	}
	return nil
}
