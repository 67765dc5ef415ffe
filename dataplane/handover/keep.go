package handover

import (
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"
)

const (
	// maxSessions are the processes that may have the sockets without serving.
	// One is the rule.
	maxSessions = 4
	// logEvery bounds the lines about refusals.
	logEvery = time.Second
)

// session is the connection to a process that came after this one.
type session struct {
	peer
	given bool // it has the sockets; under Handover.mu
}

// publish makes this process the one that answers at the path.
func (h *Handover) publish() error {
	ln, err := Listen("unixpacket", h.socketPath())
	if err != nil {
		return fmt.Errorf("the hand-over socket: %w", err)
	}
	h.mu.Lock()
	if h.leaving {
		h.mu.Unlock()
		return ln.Close()
	}
	last := h.path // which a successor that is gone has taken the path from
	h.path = ln
	h.mu.Unlock()
	h.done.Go(func() { h.accept(ln) })
	h.leavePath(last)
	return nil
}

// own tells whether the path leads to this process.
func (h *Handover) own() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.path != nil && h.path.Ours()
}

// accept answers new processes until ln is closed.
func (h *Handover) accept(ln *PathListener) {
	for {
		c, err := ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.log.Warn("a new process could not be answered", zap.Error(err))
			time.Sleep(tryPause) // it may be the want of descriptors
			continue
		}
		if err := admit(c, h.o.identify); err != nil {
			h.refused("a stranger asked for the sockets", err)
			c.Close()
			continue
		}
		s := &session{peer: peer{conn: c, now: h.o.Now}}
		if reason := h.enter(s); reason != "" {
			s.bye(reason)
			continue
		}
		h.done.Go(func() {
			why, err := h.converse(s)
			h.exit(s, why, err)
		})
	}
}

// enter adds a session, or says why not.
func (h *Handover) enter(s *session) (refusal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.leaving:
		return byeStopping
	case len(h.sessions) >= maxSessions:
		h.refusedLocked("too many processes ask for the sockets", nil)
		return byeFull
	}
	h.sessions[s] = struct{}{}
	return ""
}

// converse speaks with a new process. It returns the reason of the process's bye,
// or an error.
func (h *Handover) converse(s *session) (reason string, err error) {
	m, fds, err := s.receive(patience)
	if err != nil {
		return "", fmt.Errorf("no hello: %w", err)
	}
	closeAll(fds)
	if err := agree(m); err != nil {
		if errors.Is(err, errVersion) {
			s.bye(byeVersion)
		}
		return "", err
	}
	s.build = m.Build
	if err := s.send(hello(h.o.Build)); err != nil {
		return "", err
	}
	if h.superseded() {
		s.bye(byeSuperseded)
		return byeSuperseded, nil
	}
	h.mu.Lock()
	s.given = true // as far as the other one can know
	h.mu.Unlock()
	n, err := h.give(s, nil)
	if err != nil {
		return "", err
	}
	h.log.Info("a new process has the sockets", zap.String("from", h.o.Build), zap.String("to", s.build), zap.Int("sockets", n))
	for strange := 0; strange < maxStrange; {
		m, fds, err := s.receive(0)
		if err != nil {
			return "", err
		}
		closeAll(fds)
		switch m.Type {
		case typeWant:
			_, err = h.give(s, m.Sockets)
		case typeServing:
			if !h.succeed(s) {
				s.bye(byeSuperseded)
				return byeSuperseded, nil
			}
			err = s.send(&message{Type: typePaused})
		case typeBye:
			return m.Reason, nil
		default:
			strange++
		}
		if err != nil {
			return "", err
		}
	}
	return "", errors.New("too many messages that this version does not know")
}

// give sends the sockets, all or those that are wanted.
func (h *Handover) give(s *session, wanted []name) (int, error) {
	sockets, err := h.o.Gate.Sockets()
	if err != nil {
		return 0, err
	}
	defer closeFiles(sockets)
	var m message
	var fds []int
	sent := 0
	flush := func(more bool) error {
		m.Type, m.More = typeSockets, more
		if err := s.send(&m, fds...); err != nil {
			return err
		}
		sent += len(fds)
		m, fds = message{}, nil
		return nil
	}
	for _, k := range sockets {
		n := name{k.Role, k.Addr}
		if wanted != nil && !contains(wanted, n) {
			continue
		}
		if len(fds) == maxBatch {
			if err := flush(true); err != nil {
				return sent, err
			}
		}
		fd, err := descriptor(k.File)
		if err != nil {
			return sent, err
		}
		m.Sockets = append(m.Sockets, n)
		fds = append(fds, fd)
	}
	return sent, flush(false)
}

func contains(list []name, n name) bool {
	for _, k := range list {
		if k == n {
			return true
		}
	}
	return false
}

func (h *Handover) superseded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.successor != nil || h.retired
}

// succeed makes a session's process the one that serves: this one stops
// accepting. false when another one was first.
func (h *Handover) succeed(s *session) bool {
	h.gating.Lock()
	defer h.gating.Unlock()
	h.mu.Lock()
	if h.successor != nil || h.retired {
		first := h.successor == s
		h.mu.Unlock()
		return first
	}
	h.successor, h.paused = s, true
	h.stats.Given++
	if h.stats.Given == 1 {
		close(h.succeeded)
	}
	var others []*session
	for o := range h.sessions {
		if o != s && o.given {
			others = append(others, o)
		}
	}
	h.tellChanged()
	h.mu.Unlock()
	h.o.Gate.Pause()
	h.log.Info("the new process serves; this one stopped accepting", zap.String("from", h.o.Build), zap.String("to", s.build))
	for _, o := range others {
		o.bye(byeSuperseded) // which ends its session
	}
	return true
}

// exit ends a session. When its process served and is gone, this one serves
// again.
func (h *Handover) exit(s *session, reason string, err error) {
	s.conn.Close()
	h.gating.Lock()
	defer h.gating.Unlock()
	h.mu.Lock()
	delete(h.sessions, s)
	served := h.successor == s
	if served {
		h.successor = nil
		h.retired = reason == byeHandedOver
	}
	resume := served && !h.retired && !h.leaving
	if resume {
		h.paused = false
		h.stats.Resumed++
	}
	if !s.given && err != nil {
		h.refusedLocked("a process that asked for the sockets makes no sense", err)
	}
	left := s.given && !served && !h.leaving && h.successor == nil
	h.tellChanged()
	h.mu.Unlock()
	switch {
	case resume:
		h.o.Gate.Resume()
		h.log.Warn("the new process is gone; this one accepts again", zap.String("build", s.build), zap.String("reason", reason), zap.NamedError("connection", err))
		if err := h.publish(); err != nil {
			h.log.Error("no new process will find this one", zap.Error(err))
		}
	case served && reason == byeHandedOver:
		h.log.Info("the new process has handed over to another one", zap.String("build", s.build))
	case left:
		h.log.Warn("a new process went before it served; nothing has changed", zap.String("build", s.build), zap.String("reason", reason), zap.NamedError("connection", err))
	}
}

// tellChanged wakes Leave. mu is held.
func (h *Handover) tellChanged() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// refused counts and logs a process that got nothing.
func (h *Handover) refused(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusedLocked(what, err)
}

func (h *Handover) refusedLocked(what string, err error) {
	h.stats.Refused++
	now := h.o.Now()
	if now.Sub(h.quiet) < logEvery {
		h.unlogged++
		return
	}
	h.log.Warn(what+", and was refused", zap.Error(err), zap.Int("others", h.unlogged))
	h.quiet, h.unlogged = now, 0
}
