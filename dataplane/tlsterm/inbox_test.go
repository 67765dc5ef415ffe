package tlsterm

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func record(n int) []byte {
	b := make([]byte, recordHeader+n)
	copy(b, []byte{23, 3, 3, byte(n >> 8), byte(n)})
	for i := range n {
		b[recordHeader+i] = byte(i)
	}
	return b
}

func TestInboxShowsWholeRecordsOnly(t *testing.T) {
	in := inbox{pools: &pools{}}
	p := make([]byte, 1000)
	in.feed(record(100)[:104])
	if in.ready() || in.take(p) != 0 {
		t.Fatal("part of a record was shown")
	}
	in.feed(append(record(100)[104:], record(3)...))
	// One record at a time, in pieces.
	if n := in.take(p[:10]); n != 10 {
		t.Fatalf("took %d", n)
	}
	if n := in.take(p); n != 95 {
		t.Fatalf("took %d, want the rest of the record", n)
	}
	if n := in.take(p); n != 8 {
		t.Fatalf("took %d, want the second record", n)
	}
	if in.buf != nil {
		t.Fatal("an empty inbox owns a buffer")
	}
	// crypto/tls must see that this can't be.
	in.feed([]byte{23, 3, 3, 0xff, 0xff, 0, 0})
	if n := in.take(p); n != recordHeader {
		t.Fatalf("took %d of an oversized record, want its header", n)
	}
}

// The stream comes out as it went in, however it is cut, and what stays behind
// is in a buffer of its size.
func TestInboxStream(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := inbox{pools: &pools{}}
	var want, got []byte
	for range 300 {
		want = append(want, record(r.IntN(1<<r.IntN(15)))...)
	}
	p := make([]byte, 5000)
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(1<<r.IntN(17)))
		in.feed(rest[:n])
		rest = rest[n:]
		if r.IntN(4) == 0 {
			continue // the reader pauses
		}
		for {
			k := in.take(p[:1+r.IntN(len(p))])
			if k == 0 {
				break
			}
			got = append(got, p[:k]...)
		}
		in.settle()
		if in.buf != nil && cap(in.buf.b) > 4<<10 && cap(in.buf.b) > 4*in.len() && cap(in.buf.b) > 19<<10 {
			t.Fatalf("%d bytes are kept for %d", cap(in.buf.b), in.len())
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatal("the stream differs")
	}
	if in.buf != nil {
		t.Fatal("an empty inbox owns a buffer")
	}
}

func TestPools(t *testing.T) {
	p := &pools{}
	for _, tt := range []struct{ n, want int }{{0, 1 << 10}, {1 << 10, 1 << 10}, {1<<10 + 1, 4 << 10}, {maxRecord + recordHeader, 19 << 10}, {64 << 10, 128 << 10}, {200 << 10, 200 << 10}} {
		b := p.get(tt.n)
		if len(b.b) != 0 || cap(b.b) != tt.want {
			t.Errorf("get(%d): len %d, cap %d, want 0, %d", tt.n, len(b.b), cap(b.b), tt.want)
		}
		b.b = append(b.b, "left over"...)
		p.put(b)
		if again := p.get(tt.n); len(again.b) != 0 {
			t.Errorf("get(%d) returned a buffer with content", tt.n)
		}
	}
}
