package tlsterm

import "sync"

// classes are the capacities of pooled buffers: part of a small record, a small
// read, a whole record (RFC 8446, 5.2: 5+16384+256; TLS 1.2: +2048), and a full
// read of a loop with a record before it.
var classes = [...]int{1 << 10, 4 << 10, 19 << 10, 128 << 10}

// buffer is a borrowed byte slice. It is a struct so that giving it back does
// not allocate a slice header.
type buffer struct{ b []byte }

// pools lend buffers to all sessions, so that an idle one owns none.
type pools struct {
	class [len(classes)]sync.Pool
}

// get returns an empty buffer with a capacity of n or more.
func (p *pools) get(n int) *buffer {
	for i, size := range classes {
		if n <= size {
			if b, ok := p.class[i].Get().(*buffer); ok {
				return b
			}
			return &buffer{b: make([]byte, 0, size)}
		}
	}
	return &buffer{b: make([]byte, 0, n)}
}

// put gives b back; nobody may use it afterwards.
func (p *pools) put(b *buffer) {
	for i, size := range classes {
		if cap(b.b) == size {
			b.b = b.b[:0]
			p.class[i].Put(b)
			return
		}
	}
}

// grow returns a buffer with the content of b and room for n more bytes: b
// itself, or another one, and then b went back.
func (p *pools) grow(b *buffer, n int) *buffer {
	if b == nil {
		return p.get(n)
	}
	if cap(b.b)-len(b.b) >= n {
		return b
	}
	larger := p.get(len(b.b) + n)
	larger.b = append(larger.b, b.b...)
	p.put(b)
	return larger
}
