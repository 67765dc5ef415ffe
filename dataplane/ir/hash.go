package ir

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"
	"time"
)

// Hash returns a short name for what the snapshot says: equal snapshots have
// equal hashes, in every process and on every node. It covers keys and
// certificates, and can't be turned back into them. It costs one pass over the
// snapshot; see [Hasher] for one snapshot after the other.
func (s *Snapshot) Hash() string { return new(Hasher).Hash(s) }

// Hasher hashes one snapshot after the other, and does not look again at the
// routes and clusters that are the same pointers as in the last one. Its hashes
// are those of [Snapshot.Hash]. The zero value is ready. It is for one goroutine.
type Hasher struct {
	routes   map[string]*partSums[Route] // by the listener's name
	clusters partSums[Cluster]
	buf      []byte // to be written over
}

// Hash returns the hash of the snapshot.
func (h *Hasher) Hash(s *Snapshot) string {
	w := digest{h: sha256.New(), buf: h.buf[:0]}
	last := h.routes
	h.routes = make(map[string]*partSums[Route], len(last))
	w.count(len(s.Sockets))
	for _, x := range s.Sockets {
		w.socket(x)
		w.count(len(x.Listeners))
		for _, l := range x.Listeners {
			sums := h.routes[l.Name]
			if sums == nil {
				if sums = last[l.Name]; sums == nil {
					sums = new(partSums[Route])
				}
				h.routes[l.Name] = sums
			}
			w.listener(l)
			w.parts(sums.of(l.Routes, routeName, (*digest).route))
		}
	}
	w.process(&s.Process)
	w.parts(h.clusters.of(s.Clusters, clusterName, (*digest).cluster))
	name := hex.EncodeToString(w.sum(hashBytes))
	h.buf = w.buf
	clear(h.buf[:cap(h.buf)]) // keys were in it
	return name
}

func routeName(r *Route) string     { return r.Name }
func clusterName(c *Cluster) string { return c.Name }

// partSums are the digests of a sorted list of parts.
type partSums[T any] struct {
	parts []*T
	sums  [][partBytes]byte
	spare [][partBytes]byte // of the list before, to be written over
}

// of returns the digests of parts. It takes those of the last parts where it finds
// the same pointers.
func (p *partSums[T]) of(parts []*T, name func(*T) string, write func(*digest, *T)) [][partBytes]byte {
	if slices.Equal(parts, p.parts) {
		return p.sums
	}
	old, sums := follow(p.parts, name), p.spare[:0]
	var w *digest
	for _, x := range parts {
		if i, ok := old.find(x); ok {
			sums = append(sums, p.sums[i])
			continue
		}
		if w == nil {
			w = &digest{h: sha256.New()}
		}
		w.h.Reset()
		write(w, x)
		sums = append(sums, [partBytes]byte(w.sum(partBytes)))
	}
	p.parts, p.sums, p.spare = parts, sums, p.sums
	return sums
}

// digest feeds values to SHA-256 in an unambiguous form: each string and each
// list is preceded by its length.
type digest struct {
	h   hash.Hash
	buf []byte // not yet given to h
}

const (
	digestBuffer = 16 << 10
	hashBytes    = 8
	partBytes    = 16
)

func (w *digest) flush() {
	w.h.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *digest) sum(n int) []byte {
	w.flush()
	return w.h.Sum(nil)[:n]
}

// parts feeds the digests of a list.
func (w *digest) parts(sums [][partBytes]byte) {
	w.count(len(sums))
	for i := range sums {
		if w.buf = append(w.buf, sums[i][:]...); len(w.buf) >= digestBuffer {
			w.flush()
		}
	}
}

func (w *digest) num(n uint64)   { w.buf = binary.AppendUvarint(w.buf, n) }
func (w *digest) count(n int)    { w.num(uint64(n)) }
func (w *digest) int(n int64)    { w.buf = binary.AppendVarint(w.buf, n) }
func (w *digest) str(s string)   { w.count(len(s)); w.buf = append(w.buf, s...) }
func (w *digest) bytes(b []byte) { w.count(len(b)); w.buf = append(w.buf, b...) }

func (w *digest) flag(b bool) {
	if b {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *digest) time(t time.Time) {
	w.flag(t.IsZero())
	if !t.IsZero() {
		w.int(t.Unix())
		w.int(int64(t.Nanosecond()))
	}
}

func (w *digest) duration(d *time.Duration) {
	w.flag(d != nil)
	if d != nil {
		w.int(int64(*d))
	}
}

func (w *digest) socket(s *Socket) {
	w.str(s.Name)
	w.str(s.Addr.String())
	w.num(uint64(s.Protocol))
	w.client(&s.Client)
	w.accessLog(s.AccessLog)
}

func (w *digest) listener(l *Listener) {
	w.str(l.Name)
	w.str(l.Hostname)
	w.flag(l.TLS != nil)
	if l.TLS != nil {
		w.count(len(l.TLS.Certificates))
		for _, c := range l.TLS.Certificates {
			w.str(c.Name)
			w.bytes(c.Chain)
			w.bytes(c.Key.Reveal())
		}
	}
}

func (w *digest) route(r *Route) {
	w.str(r.Name)
	w.count(len(r.Hostnames))
	for _, h := range r.Hostnames {
		w.str(h)
	}
	w.time(r.Created)
	w.count(len(r.Rules))
	for _, x := range r.Rules {
		w.rule(x)
	}
}

func (w *digest) rule(r *Rule) {
	w.str(r.Name)
	w.count(r.Index)
	w.count(len(r.Matches))
	for _, m := range r.Matches {
		w.num(uint64(m.Path.Kind))
		w.str(m.Path.Value)
		w.str(m.Method)
		w.values(m.Headers)
		w.values(m.Query)
	}
	w.filters(r.Filters)
	w.count(len(r.Backends))
	for _, b := range r.Backends {
		w.str(b.Cluster)
		w.str(b.Invalid)
		w.num(uint64(b.Weight))
		w.filters(b.Filters)
	}
	w.duration(r.Timeouts.Request)
	w.duration(r.Timeouts.Backend)
}

func (w *digest) values(vs []ValueMatch) {
	w.count(len(vs))
	for _, v := range vs {
		w.str(v.Name)
		w.num(uint64(v.Kind))
		w.str(v.Value)
	}
}

func (w *digest) filters(fs []*Filter) {
	w.count(len(fs))
	for _, f := range fs {
		w.int(int64(f.Order))
		w.change(f.RequestHeaders)
		w.change(f.ResponseHeaders)
		w.flag(f.Redirect != nil)
		if d := f.Redirect; d != nil {
			w.str(d.Scheme)
			w.str(d.Hostname)
			w.num(uint64(d.Port))
			w.path(d.Path)
			w.count(d.Status)
		}
		w.flag(f.Rewrite != nil)
		if d := f.Rewrite; d != nil {
			w.str(d.Hostname)
			w.path(d.Path)
		}
	}
}

func (w *digest) change(c *HeaderChange) {
	w.flag(c != nil)
	if c == nil {
		return
	}
	for _, hs := range [][]Header{c.Set, c.Add} {
		w.count(len(hs))
		for _, h := range hs {
			w.str(h.Name)
			w.str(h.Value)
		}
	}
	w.count(len(c.Remove))
	for _, n := range c.Remove {
		w.str(n)
	}
}

func (w *digest) path(p *PathChange) {
	w.flag(p != nil)
	if p != nil {
		w.flag(p.Prefix)
		w.str(p.Value)
	}
}

func (w *digest) cluster(c *Cluster) {
	w.str(c.Name)
	w.num(uint64(c.Protocol))
	w.num(uint64(c.Balance))
	w.count(len(c.Endpoints))
	for _, e := range c.Endpoints {
		w.str(e.Address)
		w.flag(e.AddrPort.IsValid())
		w.num(uint64(e.Weight))
		w.flag(e.Draining)
	}
	p := c.Pool
	w.count(p.Size)
	for _, d := range []time.Duration{p.ConnectTimeout, p.ResponseTimeout, p.IdleTimeout, p.MaxAge} {
		w.int(int64(d))
	}
	w.health(c)
	a := c.Adaptive
	w.num(uint64(a.Mode))
	w.num(math.Float64bits(a.Alpha))
	w.num(math.Float64bits(a.Beta))
	for _, d := range []time.Duration{a.Initial, a.Min, a.Max} {
		w.int(int64(d))
	}
	w.num(math.Float64bits(c.Pressure.Theta))
	w.flag(c.Pressure.Off)
	w.int(int64(c.Pressure.Held))
	w.int(c.Pressure.HeldBytes)
	w.int(int64(c.Pressure.HoldTime))
}
