package accesslog

import (
	"sync/atomic"
	"time"
)

// Writer is the log's part of one loop. Its buffers go round between the loop and
// the log's goroutine: who swaps a pointer out owns the buffer until it puts it
// back, and finds nil when the other has it. Neither ever waits.
type Writer struct {
	log     *Log
	current atomic.Pointer[buffer] // what the loop appends to
	spare   atomic.Pointer[buffer] // empty; taken when the log's goroutine has the current one
	wanted  atomic.Bool            // the goroutine came while the loop was appending
	dropped atomic.Uint64          // one writer, the loop

	// The loop's.
	second int64  // of stamp, since 1970
	stamp  []byte // the time of the last entry

	// The log's goroutine's.
	held *buffer // empty, while spare is occupied

	_ [64]byte // keeps two loops' lines apart
}

// buffer holds whole lines.
type buffer struct {
	lines   []byte // never grows beyond its first capacity
	entries uint64
}

func newWriter(l *Log, size int) *Writer {
	w := &Writer{log: l, second: -1 << 63, stamp: make([]byte, 0, 32)}
	w.current.Store(&buffer{lines: make([]byte, 0, size)})
	w.spare.Store(&buffer{lines: make([]byte, 0, size)})
	return w
}

// Write logs e as having ended at now. It must run on the loop. It never blocks
// and never allocates; when the output is behind and the loop's buffers are full,
// e is dropped and counted. Texts longer than 2,048 bytes (path, query, referer),
// 512 (host, user agent, names) or 128 (the rest) are cut and end in an ellipsis.
func (w *Writer) Write(now time.Time, e *Entry) {
	b := w.current.Swap(nil)
	if b == nil {
		b = w.spare.Swap(nil)
	}
	if b == nil {
		w.drop()
		return
	}
	before := len(b.lines)
	if before+lineBound(e) > cap(b.lines) {
		w.current.Store(b)
		w.drop()
		return
	}
	w.setStamp(now)
	b.lines = appendLine(b.lines, w.stamp, e)
	b.entries++
	half, after := cap(b.lines)/2, len(b.lines)
	w.current.Store(b)

	if before == 0 {
		notify(w.log.filled)
	}
	// A sign beyond the half is repeated at each quarter: one that the goroutine
	// missed is not the last.
	if after > half && (before <= half || before/(half/2) != after/(half/2)) {
		notify(w.log.urgent)
	}
	if w.wanted.Load() {
		w.wanted.Store(false)
		notify(w.log.urgent)
	}
}

func (w *Writer) drop() {
	w.dropped.Store(w.dropped.Load() + 1)
	notify(w.log.urgent)
}

// notify sends without waiting: a sign that is already there is enough.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// setStamp formats now, RFC 3339 in UTC with milliseconds. The part down to the
// second is kept while the second lasts.
func (w *Writer) setStamp(now time.Time) {
	const tail = len(".000Z")
	if s := now.Unix(); s != w.second {
		w.second = s
		w.stamp = now.UTC().AppendFormat(w.stamp[:0], "2006-01-02T15:04:05.000Z")
	}
	ms := now.Nanosecond() / int(time.Millisecond)
	digits := w.stamp[len(w.stamp)-tail+1:]
	digits[0], digits[1], digits[2] = byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)
}

// take gives the loop's buffer to the log's goroutine, or nil when there is
// nothing to write or the loop is in the middle of an entry; then it will say so.
func (w *Writer) take() *buffer {
	b := w.current.Swap(nil)
	if b == nil {
		if w.held != nil && w.spare.Load() != nil {
			return nil // neither buffer is the loop's: it has written nothing since
		}
		w.wanted.Store(true) // before the second look: one of the two sees the other
		if b = w.current.Swap(nil); b == nil {
			return nil
		}
		w.wanted.Store(false)
	}
	if w.held != nil {
		w.spare.Store(w.held) // it is empty: the loop had to take it to have b
		w.held = nil
	}
	return b
}

// release gives a written buffer back.
func (w *Writer) release(b *buffer) {
	b.lines, b.entries = b.lines[:0], 0
	if !w.spare.CompareAndSwap(nil, b) {
		w.held = b
	}
}
