package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	maxBatches = 64 // of one answer
	// While the process that answers has a successor already, the path leads to
	// the wrong one for a moment.
	tries      = 25
	tryPause   = 100 * time.Millisecond
	maxStrange = 1000 // messages of unknown type on one connection
)

// predecessor is the process whose sockets this one takes.
type predecessor struct {
	peer
	answers chan struct{} // receives after the last batch of an answer
	paused  chan struct{} // closed when it has stopped accepting
	gone    chan struct{} // closed when the connection has ended
	reason  string        // of its bye; read after gone
	wanted  name          // what Ask waits for; under Handover.mu
	once    sync.Once
}

// errNone tells that no process answers.
var errNone = errors.New("no process answers")

// errSuperseded tells that the process that answered has a successor, or stops.
var errSuperseded = errors.New("the process that answered does not serve any more")

// Take asks the process that serves for its sockets, which [Handover.Inherited]
// then gives. There may be none: that is no error, and the log tells.
func (h *Handover) Take(ctx context.Context) {
	h.asking.Lock()
	defer h.asking.Unlock()
	switch err := h.find(ctx, func(name) bool { return true }); {
	case err == nil:
	case !errors.Is(err, errNone):
		h.log.Error("the process that serves does not hand its sockets over", zap.Error(err))
	case h.life.others:
		h.log.Warn("another process uses the directory, but none answers; its ports are shared with it if it lets them",
			zap.String("directory", h.o.Dir))
	default:
		h.log.Info("no process to take sockets over from", zap.String("directory", h.o.Dir))
	}
}

// find connects to the process that serves, and keeps those of its sockets that
// keep wants. asking is held.
func (h *Handover) find(ctx context.Context, keep func(name) bool) error {
	var err error
	for range tries {
		if err = h.connect(keep); !errors.Is(err, errSuperseded) {
			return err
		}
		select {
		case <-time.After(tryPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (h *Handover) connect(keep func(name) bool) error {
	d := net.Dialer{Timeout: patience}
	c, err := d.Dial("unixpacket", h.socketPath())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errNone // never was, or crashed
	}
	if err != nil {
		return err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return errNone
	}
	if err := admit(conn, h.o.identify); err != nil {
		c.Close()
		return fmt.Errorf("the process behind %s is not ours: %w", h.socketPath(), err)
	}
	p := &predecessor{
		peer: peer{conn: conn, now: h.o.Now}, answers: make(chan struct{}, 1),
		paused: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := h.greet(p, keep); err != nil {
		if errors.Is(err, errSuperseded) {
			c.Close()
		} else {
			p.bye(byeFailed)
		}
		return err
	}
	h.mu.Lock()
	h.predecessor, h.answered = p, true
	h.mu.Unlock()
	h.done.Go(func() { h.listen(p) })
	return nil
}

// greet does what comes at once: hello, hello, sockets.
func (h *Handover) greet(p *predecessor, keep func(name) bool) error {
	if err := p.send(hello(h.o.Build)); err != nil {
		return err
	}
	m, fds, err := p.receive(patience)
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	closeAll(fds)
	if m.Type == typeBye {
		return parting(m)
	}
	if err := agree(m); err != nil {
		return err
	}
	p.build = m.Build
	got := 0
	for batch := 0; batch < maxBatches; {
		m, fds, err := p.receive(patience)
		if err != nil {
			return fmt.Errorf("no sockets: %w", err)
		}
		switch m.Type {
		case typeSockets:
			n, err := h.store(m, fds, keep)
			if err != nil {
				return err
			}
			got += n
			if !m.More {
				h.log.Info("sockets were handed over", zap.String("from", p.build), zap.String("to", h.o.Build), zap.Int("sockets", got))
				return nil
			}
		case typeBye:
			closeAll(fds)
			return parting(m)
		default:
			closeAll(fds)
		}
		batch++
	}
	return errors.New("the sockets do not end")
}

// parting is the error of a bye that comes instead of sockets.
func parting(m *message) error {
	if m.Reason == byeSuperseded || m.Reason == byeStopping {
		return errSuperseded
	}
	return fmt.Errorf("it refuses: %s", m.Reason)
}

// store keeps the descriptors that are what was said and that keep wants, and
// closes the others. mu is held when it calls keep.
func (h *Handover) store(m *message, fds []int, keep func(name) bool) (kept int, err error) {
	if len(fds) != len(m.Sockets) {
		closeAll(fds)
		return 0, fmt.Errorf("%d descriptors came for %d sockets", len(fds), len(m.Sockets))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range m.Sockets {
		err := verify(fds[i], n)
		if err != nil {
			h.log.Warn("a descriptor is not what was said, and is closed", zap.Stringer("socket", n), zap.Error(err))
		}
		if err != nil || !keep(n) || n.Role != Traffic && n.Role != Admin {
			closeAll(fds[i : i+1])
			continue
		}
		h.inherited[n] = append(h.inherited[n], fds[i])
		kept++
	}
	return kept, nil
}

// listen receives what the predecessor still says, until it ends.
func (h *Handover) listen(p *predecessor) {
	defer h.part(p)
	for strange := 0; strange < maxStrange; {
		m, fds, err := p.receive(0)
		if err != nil {
			return
		}
		switch m.Type {
		case typeSockets:
			// Ask waits for these, or has stopped waiting: then they are closed.
			if _, err := h.store(m, fds, func(k name) bool { return k == p.wanted }); err != nil {
				h.log.Warn("an answer that makes no sense", zap.Error(err))
				return
			}
			if !m.More {
				select {
				case p.answers <- struct{}{}:
				default:
				}
			}
			continue
		case typePaused:
			p.once.Do(func() { close(p.paused) })
		case typeBye:
			p.reason = m.Reason
			closeAll(fds)
			return
		default:
			strange++
		}
		closeAll(fds)
	}
}

// part ends the connection to a predecessor.
func (h *Handover) part(p *predecessor) {
	p.conn.Close()
	close(p.gone)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.predecessor == p {
		h.predecessor = nil
	}
	if !h.leaving {
		reason := p.reason
		if reason == "" {
			reason = "its connection ended"
		}
		h.log.Info("the process before this one is gone or drains", zap.String("build", p.build), zap.String("reason", reason))
	}
}

// before returns the predecessor, nil when there is none.
func (h *Handover) before() *predecessor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.predecessor
}

// Inherited returns descriptors of the sockets that were handed over for an
// address and that nobody has fetched yet; they are the caller's. There may be
// several for one address, or none.
func (h *Handover) Inherited(role string, addr netip.AddrPort) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := name{role, addr}
	fds := h.inherited[n]
	delete(h.inherited, n)
	h.stats.Sockets += len(fds)
	return fds
}

// Ask asks the process before this one again, for an address that is taken: it
// may have bound it in the meantime. Or a process has begun to serve that was not
// there before. It takes some seconds at most.
func (h *Handover) Ask(role string, addr netip.AddrPort) []int {
	h.asking.Lock()
	defer h.asking.Unlock()
	n := name{role, addr}
	if fds := h.Inherited(role, addr); len(fds) > 0 {
		return fds
	}
	p := h.before()
	if p == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if h.own() || h.find(ctx, func(k name) bool { return k == n }) != nil {
			return nil
		}
		return h.Inherited(role, addr)
	}
	select {
	case <-p.answers: // of a question that was given up
	default:
	}
	h.want(p, n)
	if p.send(&message{Type: typeWant, Sockets: []name{n}}) != nil {
		h.want(p, name{})
		return nil
	}
	select {
	case <-p.answers:
	case <-p.gone:
	case <-time.After(patience):
		h.log.Warn("the process before this one does not answer", zap.Stringer("socket", n))
	}
	h.want(p, name{})
	return h.Inherited(role, addr)
}

// want sets the address for which sockets of an answer are kept.
func (h *Handover) want(p *predecessor, n name) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.wanted = n
}

// Beside tells whether a port that is taken may be ours: another process uses
// the directory, and none has answered. Who holds the port decides in the end: it
// must be of the same user and let others listen beside it.
func (h *Handover) Beside() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life.others && !h.answered
}

// drop closes the descriptors that nobody has fetched.
func (h *Handover) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, fds := range h.inherited {
		closeAll(fds)
		delete(h.inherited, n)
	}
}

// Serving tells that this process serves: sockets that were handed over and not
// fetched are closed, the process before this one stops accepting, and this one
// answers at the path from now on. It returns when that is so, after some seconds
// at most; the error is that of the path.
func (h *Handover) Serving(ctx context.Context) error {
	h.asking.Lock()
	defer h.asking.Unlock()
	h.drop()
	p := h.before()
	if p == nil {
		p = h.seek(ctx)
	}
	for range tries {
		if p == nil {
			break
		}
		again, ok := h.relieve(ctx, p)
		if ok {
			h.mu.Lock()
			h.stats.Taken++
			h.mu.Unlock()
			h.log.Info("the process before this one has stopped accepting", zap.String("from", p.build), zap.String("to", h.o.Build))
		}
		if !again {
			break
		}
		p = h.seek(ctx)
	}
	return h.publish()
}

// seek looks for a process that serves by now, and wants none of its sockets:
// those that this one needs it has.
func (h *Handover) seek(ctx context.Context) *predecessor {
	if h.find(ctx, func(name) bool { return false }) != nil {
		return nil
	}
	return h.before()
}

// relieve makes a predecessor stop accepting. again says to look for another one:
// it went, maybe because a third process was faster. Its reason is not relied on,
// since a connection's end can overtake the last message.
func (h *Handover) relieve(ctx context.Context, p *predecessor) (again, ok bool) {
	if err := p.send(&message{Type: typeServing}); err != nil {
		p.conn.Close()
		<-p.gone
		return true, false
	}
	select {
	case <-p.paused:
		return false, true
	case <-p.gone:
		return true, false
	case <-time.After(patience):
		h.log.Warn("the process before this one does not stop accepting; both serve", zap.String("build", p.build))
	case <-ctx.Done():
	}
	return false, false
}
