//go:build linux

package reactor

import "github.com/panjf2000/gnet/v2/pkg/netpoll"

// interest is what the poller reports of a connection's descriptor.
type interest uint8

const (
	// nothing: not registered.
	nothing interest = iota
	// readable: level-triggered.
	readable
	// readWritable: level-triggered.
	readWritable
	// held: edge-triggered writable, and no reading. The poller has no empty
	// interest and no way from reading to writing but to register anew. This
	// one costs one spurious event, then only tells that a blocked send buffer
	// has room, that the peer has ended, or a reset, and each of them once.
	held
)

// tellPoller changes what the poller reports to what the connection's state
// needs. Pausing costs nothing until the peer sends something: then the first
// report, which is not wanted, makes it known.
func (c *Conn) tellPoller() {
	want := readable
	switch {
	case c.flags&(flagConnecting|flagEOF) != 0,
		c.flags&(flagClosing|flagLinger) == flagClosing,
		c.flags&(flagClosing|flagPaused|flagIgnored) == flagPaused|flagIgnored:
		want = held
	case c.flags&flagBlocked != 0:
		want = readWritable
	}
	if want == c.interest {
		return
	}
	p, at := c.loop.poller, &c.loop.attach
	at.FD = c.fd
	var err error
	switch {
	case want == held:
		if c.interest != nothing {
			err = p.Delete(c.fd)
		}
		if err == nil {
			err = p.AddWrite(at, true)
		}
	case c.interest == nothing:
		err = add(p, at, want)
	case want == readable:
		err = p.ModRead(at, false)
	default:
		err = p.ModReadWrite(at, false)
	}
	if err != nil {
		c.finish(err)
		return
	}
	c.interest = want
}

func add(p *netpoll.Poller, at *netpoll.PollAttachment, want interest) error {
	if want == readable {
		return p.AddRead(at, false)
	}
	return p.AddReadWrite(at, false)
}
