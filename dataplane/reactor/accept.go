//go:build linux

package reactor

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2/pkg/netpoll"
	gnetsocket "github.com/panjf2000/gnet/v2/pkg/socket"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// acceptBatch bounds the connections that are accepted before they are
	// handed over.
	acceptBatch = 128
	// firstBackOff and lastBackOff bound the pause after an accept that failed
	// for want of resources. It doubles with each failure.
	firstBackOff = 10 * time.Millisecond
	lastBackOff  = time.Second
)

// socket is one listening descriptor and the loop that accepts from it. Fields
// without a note belong to that loop.
type socket struct {
	listener *Listener
	loop     *Loop
	retry    Timer
	delay    time.Duration // last back-off, 0 when the last accept went well

	mu      sync.Mutex // held while accepting, so that close can come from any goroutine
	fd      int        // -1 when closed
	id      int        // the descriptor; also after close
	watched bool       // registered with the poller
	shared  bool       // other processes may have descriptors of the socket
}

func newSocket(ln *Listener, l *Loop, fd int) *socket {
	s := &socket{listener: ln, loop: l, fd: fd, id: fd}
	s.retry.Fire = func(time.Time) { s.watch() }
	return s
}

// open makes the loop accept. It runs on the loop.
func (s *socket) open() {
	s.mu.Lock()
	closed := s.fd < 0
	s.mu.Unlock()
	if !closed {
		s.loop.sockets[s.id] = s
		s.watch()
	}
}

// watch makes the poller report connections, or not. It runs on the loop.
func (s *socket) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := !s.listener.paused.Load() && !s.retry.Armed()
	if s.fd < 0 || want == s.watched {
		return
	}
	var err error
	if want {
		err = s.loop.poller.AddRead(&netpoll.PollAttachment{FD: s.fd}, false)
	} else {
		err = s.loop.poller.Delete(s.fd)
	}
	if err != nil {
		s.loop.log.Error("listener", zap.Stringer("addr", s.listener.addr), zap.Error(err))
		s.loop.Schedule(&s.retry, lastBackOff)
		return
	}
	s.watched = want
}

// close closes the descriptor. Any goroutine may call it.
func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return
	}
	if s.watched {
		// Closing does not take it from the poller when File has made a
		// duplicate: the poller would report it for ever.
		_ = s.loop.poller.Delete(s.fd)
		s.watched = false
	}
	closeFD(s.fd)
	s.fd = -1
}

// forget makes the loop let go of a closed socket. It runs on the loop.
func (s *socket) forget() {
	s.loop.Cancel(&s.retry)
	if s.loop.sockets[s.id] == s {
		delete(s.loop.sockets, s.id)
	}
}

// duplicate returns another descriptor of the same socket.
func (s *socket) duplicate() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return -1, os.ErrClosed
	}
	s.shared = true
	fd, err := gnetsocket.Dup(s.fd)
	return fd, os.NewSyscallError("dup", err)
}

// accept takes the connections that wait, and hands them over.
func (s *socket) accept() {
	s.acceptAll()
	s.loop.place.handOver(s.loop)
	s.watch()
}

// acceptAll accepts until there are no more, or a batch is full: then the
// poller will report the rest.
func (s *socket) acceptAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared && s.fd >= 0 {
		s.keepNonblocking()
	}
	for range acceptBatch {
		if s.fd < 0 || s.listener.paused.Load() || s.retry.Armed() {
			return
		}
		fd, remote, errno := accept(s.fd)
		switch errno {
		case 0:
			s.delay = 0
			s.loop.place.put(accepted{fd: fd, remote: remote, listener: s.listener})
		case unix.EAGAIN:
			return
		case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.EPERM, unix.ENETDOWN, unix.ENOPROTOOPT, unix.EHOSTDOWN,
			unix.ENONET, unix.EHOSTUNREACH, unix.EOPNOTSUPP, unix.ENETUNREACH, unix.ETIMEDOUT:
			// That connection's fate, accept(2); the next may be well.
		default:
			s.backOff(errno)
			return
		}
	}
}

// keepNonblocking undoes what another process may have done: O_NONBLOCK belongs
// to the socket, not to the descriptor, and accepting must not wait.
func (s *socket) keepNonblocking() {
	flags, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		_, err = unix.FcntlInt(uintptr(s.fd), unix.F_SETFL, flags|unix.O_NONBLOCK)
	}
	if err != nil {
		s.loop.log.Error("listener", zap.Stringer("addr", s.listener.addr), zap.Error(err))
	}
}

// backOff pauses accepting after an error that would come again at once: no
// descriptors or memory left, or the socket broken. It sheds one connection by
// means of the reserve descriptor, so that a client learns of it.
func (s *socket) backOff(errno unix.Errno) {
	l := s.loop
	count(&l.stats.acceptErrors)
	if s.delay == 0 {
		s.delay = firstBackOff
		l.log.Error("accept failed; pausing", zap.Stringer("addr", s.listener.addr), zap.Error(errno))
	} else {
		s.delay = min(2*s.delay, lastBackOff)
	}
	if errors.Is(errno, unix.EMFILE) || errors.Is(errno, unix.ENFILE) {
		if l.reserve >= 0 {
			closeFD(l.reserve)
			l.reserve = -1
			if fd, _, e := accept(s.fd); e == 0 {
				closeFD(fd)
				count(&l.stats.shed)
			}
		}
		l.openReserve()
	}
	l.Schedule(&s.retry, s.delay)
}

// openReserve gets the descriptor to give up when there are none left.
func (l *Loop) openReserve() {
	if l.reserve < 0 {
		if fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			l.reserve = fd
		}
	}
}
