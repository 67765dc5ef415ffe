package controllers

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/port"
	"github.com/headgate/headgate/dataplane/ir"
)

// Ports knows the ports of this host. [port.Host] is one.
type Ports interface {
	// Listener returns the socket that keeps others from listening on an address.
	Listener(netip.AddrPort) (port.Listener, bool)
	// Holder finds out who has it.
	Holder(port.Listener) port.Holder
	// Reach tries where connections go, until the context ends.
	Reach(context.Context, []netip.AddrPort) map[netip.AddrPort]port.Verdict
}

const (
	// freedEvery is how often it is looked whether a port that is taken is free.
	freedEvery = 500 * time.Millisecond
	// reachWait is how long a turn waits to hear where the connections to new
	// sockets go; reachMost is how long they are tried. Mostly it takes 1 ms.
	reachWait = 100 * time.Millisecond
	reachMost = 2 * time.Second
	// reachAgain is when a socket that connections don't reach is tried again.
	reachAgain = 10 * time.Second
)

// sockets is what the loop knows of its sockets besides the data plane's answer:
// who has those that could not be opened, and whether connections come to the
// others. It belongs to the goroutine of the loop.
type sockets struct {
	ports Ports // may be nil: then nothing is known
	held  map[string]port.Holder
	tried map[string]*trial
	// trying says that answers will get one.
	trying  bool
	answers chan map[*trial]*compile.Diverted
}

// trial is where connections to one socket were tried.
type trial struct {
	to     []netip.AddrPort
	rivals string // what might take them
	known  bool
	fault  *compile.Diverted // nil when they come
}

func newSockets(p Ports) sockets {
	return sockets{
		ports: p, held: make(map[string]port.Holder), tried: make(map[string]*trial),
		answers: make(chan map[*trial]*compile.Diverted, 1),
	}
}

// explain returns the data plane's answer with all that is known about the
// sockets of the snapshot. node are the addresses of this host. It waits a little
// for what is not known yet.
func (s *sockets) explain(ctx context.Context, snap *ir.Snapshot, res ir.ApplyResult, node []netip.Addr, report *compile.Report) ir.ApplyResult {
	if s.ports == nil || res.Err != nil {
		return res
	}
	out := res
	out.Sockets = maps.Clone(res.Sockets)
	if out.Sockets == nil {
		out.Sockets = make(map[string]error)
	}
	held := make(map[string]port.Holder)
	tried := make(map[string]*trial)
	rivals := report.Rivals()
	for _, k := range snap.Sockets {
		if err := res.Sockets[k.Name]; err == nil {
			tried[k.Name] = s.trial(k, node, rivals[k.Name])
		} else if errors.Is(err, syscall.EADDRINUSE) {
			held[k.Name] = s.holder(k)
			if h := held[k.Name]; h.Addr.IsValid() {
				out.Sockets[k.Name] = &compile.Occupied{Err: err, At: h.Addr, Holder: h.String(), Advice: h.Advice()}
			}
		}
	}
	s.held, s.tried = held, tried
	s.await(ctx)
	for name, t := range tried {
		if t.fault != nil {
			out.Sockets[name] = t.fault
		}
	}
	return out
}

// await waits a little for what is not known yet.
func (s *sockets) await(ctx context.Context) {
	var late <-chan time.Time
	for s.unknown() && s.try(ctx, func(t *trial) bool { return !t.known }) {
		if late == nil {
			late = time.After(reachWait)
		}
		select {
		case a := <-s.answers:
			s.take(a)
		case <-late:
			return // the loop will get the answer
		case <-ctx.Done():
			return
		}
	}
}

// unknown tells whether there are open sockets that were not tried.
func (s *sockets) unknown() bool {
	for _, t := range s.tried {
		if !t.known {
			return true
		}
	}
	return false
}

// trial returns what is known of an open socket.
func (s *sockets) trial(k *ir.Socket, node []netip.Addr, rivals string) *trial {
	t := &trial{rivals: rivals}
	if k.Addr.Addr().IsUnspecified() {
		for _, n := range node {
			if n = n.Unmap(); n.Is4() == k.Addr.Addr().Is4() {
				t.to = append(t.to, netip.AddrPortFrom(n, k.Addr.Port()))
			}
		}
	} else {
		t.to = append(t.to, k.Addr)
	}
	if was := s.tried[k.Name]; was != nil && was.rivals == t.rivals && slices.Equal(was.to, t.to) {
		return was
	}
	return t
}

// holder returns who has a socket's port.
func (s *sockets) holder(k *ir.Socket) port.Holder {
	l, ok := s.ports.Listener(k.Addr)
	if was := s.held[k.Name]; !ok || was.Listener == l {
		if !ok {
			was = port.Holder{}
		}
		return was
	}
	return s.ports.Holder(l)
}

// freed tells whether a port that was taken is free, or somebody else's.
func (s *sockets) freed(snap *ir.Snapshot) bool {
	return slices.ContainsFunc(snap.Sockets, func(k *ir.Socket) bool {
		h, held := s.held[k.Name]
		if !held {
			return false
		}
		l, _ := s.ports.Listener(k.Addr)
		return l != h.Listener
	})
}

// try starts to find out where connections to sockets go. It tells whether there
// will be an answer; there is one attempt at a time.
func (s *sockets) try(ctx context.Context, which func(*trial) bool) bool {
	var list []*trial
	var to []netip.AddrPort
	for _, t := range s.tried {
		if which(t) {
			list = append(list, t)
			to = append(to, t.to...)
		}
	}
	if s.trying || len(list) == 0 {
		return s.trying
	}
	s.trying = true
	go func() {
		ctx, cancel := context.WithTimeout(ctx, reachMost)
		defer cancel()
		verdicts := s.ports.Reach(ctx, to)
		answer := make(map[*trial]*compile.Diverted, len(list))
		for _, t := range list {
			answer[t] = t.judge(verdicts)
		}
		s.answers <- answer
	}()
	return true
}

// judge returns what is wrong with the connections to a socket, or nil. What is
// unknown now is as it was.
func (t *trial) judge(verdicts map[netip.AddrPort]port.Verdict) *compile.Diverted {
	d := &compile.Diverted{Refused: true}
	for _, a := range t.to {
		v := verdicts[a]
		if v == port.Unknown && t.fault != nil && slices.Contains(t.fault.To, a) {
			v = port.Diverted
			if t.fault.Refused {
				v = port.Refused
			}
		}
		if v == port.Diverted || v == port.Refused {
			d.To = append(d.To, a)
			d.Refused = d.Refused && v == port.Refused
		}
	}
	if len(d.To) == 0 {
		return nil
	}
	return d
}

// take notes an answer, and tells whether it says anything new.
func (s *sockets) take(answer map[*trial]*compile.Diverted) (news bool) {
	s.trying = false
	for t, fault := range answer {
		same := t.known && (fault == nil) == (t.fault == nil) &&
			(fault == nil || fault.Refused == t.fault.Refused && slices.Equal(fault.To, t.fault.To))
		news = news || !same
		t.known = true
		if !same {
			t.fault = fault
		}
	}
	return news
}

// diverted tells whether connections don't reach one of the sockets.
func (s *sockets) diverted() bool {
	for _, t := range s.tried {
		if t.diverted() {
			return true
		}
	}
	return false
}

// diverted tells whether connections don't reach the socket.
func (t *trial) diverted() bool { return t.fault != nil }
