package port

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// Verdict says where connections to an address go.
type Verdict uint8

// The verdicts.
const (
	// Unknown is the verdict where nothing can be said: the address is not this
	// host's, or it did not answer in time.
	Unknown Verdict = iota
	// Arrives says that connections come to a socket of this network.
	Arrives
	// Diverted says that they are taken to somebody else, by the host's rules.
	Diverted
	// Refused says that they are refused, though a socket listens there.
	Refused
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return [...]string{"unknown", "arrives", "diverted", "refused"}[v]
}

// Reach finds out where connections to addresses on which somebody in this
// network listens go. It makes one connection to each, says nothing on it, and
// looks for its other end among the sockets of this network: what is not there was
// redirected. It takes as long as the slowest address, at most until ctx ends.
// Addresses that this host does not have are left out of the answer: what is far
// can't be seen.
func (h *Host) Reach(ctx context.Context, addrs []netip.AddrPort) map[netip.AddrPort]Verdict {
	out := h.reach(ctx, addrs)
	// What looks bad is looked at twice: the socket may just have been closed.
	var bad []netip.AddrPort
	for a, v := range out {
		if v == Diverted || v == Refused {
			bad = append(bad, a)
		}
	}
	if len(bad) == 0 {
		return out
	}
	for a, again := range h.reach(ctx, bad) {
		if again != out[a] {
			out[a] = Unknown
		}
	}
	return out
}

// try is one connection.
type try struct {
	addr netip.AddrPort
	conn net.Conn
	err  error
}

func (h *Host) reach(ctx context.Context, addrs []netip.AddrPort) map[netip.AddrPort]Verdict {
	var tries []*try
	var dialing sync.WaitGroup
	near := own()
	for _, a := range addrs {
		if !near[a.Addr()] && !a.Addr().IsLoopback() {
			continue
		}
		t := &try{addr: a}
		tries = append(tries, t)
		dialing.Go(func() { t.conn, t.err = h.dial(ctx, "tcp", a.String()) })
	}
	dialing.Wait()
	defer func() {
		for _, t := range tries {
			if t.conn != nil {
				abort(t.conn)
			}
		}
	}()
	out := make(map[netip.AddrPort]Verdict, len(tries))
	ends, err := h.ends(tries)
	for _, t := range tries {
		out[t.addr] = Unknown
		switch {
		case err != nil:
		case errors.Is(t.err, syscall.ECONNREFUSED):
			if _, ok := h.Listener(t.addr); ok {
				out[t.addr] = Refused
			}
		case t.err != nil:
		default:
			mine := endOf(t.conn.LocalAddr())
			switch {
			case ends[pair{t.addr, mine}]:
				out[t.addr] = Arrives
			case ends[pair{mine, t.addr}]:
				out[t.addr] = Diverted // we are connected, and not with ourselves
			}
		}
	}
	return out
}

// pair is a connection as one of its ends sees it.
type pair struct{ local, remote netip.AddrPort }

// ends returns which ends of the tries are sockets of this network.
func (h *Host) ends(tries []*try) (map[pair]bool, error) {
	want, found := make(map[pair]bool), make(map[pair]bool)
	for _, t := range tries {
		if t.conn != nil {
			mine := endOf(t.conn.LocalAddr())
			want[pair{t.addr, mine}], want[pair{mine, t.addr}] = true, true
		}
	}
	if len(want) == 0 {
		return nil, nil
	}
	// Both: a connection over IPv4 may end at a socket of IPv6.
	for _, table := range tables {
		err := h.each(table, func(e entry) bool {
			p := pair{unmapped(e.local), unmapped(e.remote)}
			if want[p] && (e.state == established || e.state == synReceived) {
				found[p] = true
			}
			return len(found) < len(want)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}

func endOf(a net.Addr) netip.AddrPort {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return unmapped(ap)
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// abort ends a connection with a reset: it leaves no TIME_WAIT behind.
func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // then it closes as usual
	}
	c.Close()
}

// own returns the addresses of the interfaces of this network.
func own() map[netip.Addr]bool {
	out := make(map[netip.Addr]bool)
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return out // then nothing is known to be near
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().WithZone("")] = true
		}
	}
	return out
}
