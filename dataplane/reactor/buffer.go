//go:build linux

package reactor

import "golang.org/x/sys/unix"

const (
	chunkClasses   = 3
	freeBytesLimit = 4 << 20 // bytes that one loop keeps for reuse
)

// chunkSize returns the bytes of a chunk of the class.
func chunkSize(class int) int { return 4 << 10 << (2 * class) } // 4, 16, 64 KiB

// chunk is a piece of a connection's outbound queue: buf[off:end] waits to be
// sent.
type chunk struct {
	next     *chunk
	buf      []byte
	off, end int
	class    int
}

// freeList keeps chunks for reuse. It belongs to one loop.
type freeList struct {
	head  [chunkClasses]*chunk
	bytes int
}

func (f *freeList) get(class int) *chunk {
	c := f.head[class]
	if c == nil {
		return &chunk{buf: make([]byte, chunkSize(class)), class: class}
	}
	f.head[class] = c.next
	f.bytes -= len(c.buf)
	c.next, c.off, c.end = nil, 0, 0
	return c
}

func (f *freeList) put(c *chunk) {
	if f.bytes+len(c.buf) > freeBytesLimit {
		return // the collector's
	}
	f.bytes += len(c.buf)
	c.next = f.head[c.class]
	f.head[c.class] = c
}

// outbound is what a connection has still to send. Its chunks are borrowed from
// the loop's free list and given back as soon as they are sent.
type outbound struct {
	head, tail *chunk
	n          int // bytes in all chunks
}

// append copies p to the end of the queue.
func (o *outbound) append(f *freeList, p []byte) {
	for len(p) > 0 {
		t := o.tail
		if t == nil || t.end == len(t.buf) {
			t = f.get(classFor(max(len(p), o.n)))
			if o.tail == nil {
				o.head = t
			} else {
				o.tail.next = t
			}
			o.tail = t
		}
		k := copy(t.buf[t.end:], p)
		t.end += k
		o.n += k
		p = p[k:]
	}
}

// classFor returns the class of the chunk that n bytes get. A queue that grows
// gets larger chunks: it has few of them, and few bytes never cost 64 KiB.
func classFor(n int) int {
	for class := range chunkClasses - 1 {
		if n <= chunkSize(class) {
			return class
		}
	}
	return chunkClasses - 1
}

// gather appends the queue's bytes to iov until iov is full, and returns how
// many bytes it appended.
func (o *outbound) gather(iov []unix.Iovec) ([]unix.Iovec, int) {
	n := 0
	for c := o.head; c != nil && len(iov) < cap(iov); c = c.next {
		v := unix.Iovec{Base: &c.buf[c.off]}
		v.SetLen(c.end - c.off)
		iov = append(iov, v)
		n += c.end - c.off
	}
	return iov, n
}

// consume drops the first n bytes, which have been sent.
func (o *outbound) consume(f *freeList, n int) {
	o.n -= n
	for n > 0 {
		c := o.head
		k := min(n, c.end-c.off)
		c.off += k
		n -= k
		if c.off == c.end {
			o.head = c.next
			if o.head == nil {
				o.tail = nil
			}
			f.put(c)
		}
	}
}

// release drops everything.
func (o *outbound) release(f *freeList) {
	for c := o.head; c != nil; {
		next := c.next
		f.put(c)
		c = next
	}
	*o = outbound{}
}
