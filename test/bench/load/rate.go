//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/test/bench/rig"
)

func runRate(args []string) error {
	fs := flag.NewFlagSet("rate", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "Host field")
	path := fs.String("path", "/", "path of the request")
	conns := fs.Int("conns", 64, "connections")
	lazy := fs.Bool("lazy", false, "open connections when all others are busy, up to -conns")
	rate := fs.Float64("rate", 1000, "requests per second")
	poisson := fs.Bool("poisson", false, "let requests fall due by chance, with the rate as mean")
	seed := fs.Uint64("seed", 1, "of the chance")
	duration := fs.Duration("duration", 5*time.Second, "how long requests fall due")
	warmup := fs.Duration("warmup", time.Second, "how long before that, without counting")
	span := fs.Duration("slots", 0, "count what ends in each span of this length; 0 for not")
	fs.Parse(args)
	target, err := netip.ParseAddrPort(*addr)
	if err != nil {
		return err
	}
	l := &openLoop{
		addr:     &unix.SockaddrInet4{Port: int(target.Port()), Addr: target.Addr().As4()},
		request:  []byte("GET " + *path + " HTTP/1.1\r\nHost: " + *host + "\r\n\r\n"),
		interval: time.Duration(float64(time.Second) / *rate),
		lazy:     *lazy,
		span:     *span,
	}
	if *poisson {
		l.chance = rand.New(rand.NewPCG(*seed, 0))
	}
	if err := l.run(*conns, *warmup, *duration); err != nil {
		return err
	}
	us := func(q float64) float64 { return float64(l.latency.quantile(q)) / 1e3 }
	return report(rig.RateResult{
		Rate:     *rate,
		Achieved: float64(l.latency.count) / l.took.Seconds(),
		Requests: l.latency.count,
		Errors:   l.errors,
		Statuses: l.statuses,
		Unsent:   l.unsent,
		Mean:     float64(l.latency.mean()) / 1e3,
		P50:      us(0.5), P90: us(0.9), P99: us(0.99), P999: us(0.999), Max: float64(l.latency.max) / 1e3,
		P99All: float64(l.every.quantile(0.99)) / 1e3,
		Slots:  l.slots,
	})
}

// openLoop sends requests when they are due over a set of connections, whether
// or not earlier ones have been answered. It is one thread on one epoll.
type openLoop struct {
	addr     unix.Sockaddr
	request  []byte
	interval time.Duration // between two requests, in the mean
	chance   *rand.Rand    // of a Poisson process; nil for a constant rate
	lazy     bool          // connect only when needed
	span     time.Duration // of a slot; 0 for none

	epoll    int
	limit    int // of connections
	conns    map[int]*rateConn
	idle     []*rateConn
	busy     int // connections with a request
	counting time.Time
	latency  histogram // of good answers
	every    histogram // of all answers
	statuses map[int]uint64
	errors   uint64
	unsent   uint64
	slots    []rig.Slot
	took     time.Duration
	buf      [64 << 10]byte
}

// rateConn is one keep-alive connection with at most one request.
type rateConn struct {
	fd         int
	connecting bool
	busy       bool      // it has a request, maybe not sent yet
	due        time.Time // when that was due
	counted    bool
	head       []byte // of an answer that came in parts
	left       int    // bytes of the body still to come; inHead before
	status     int
	last       bool // the server closes after this answer
}

// inHead is what is left of an answer whose head is not complete.
const inHead = -1

func (l *openLoop) run(conns int, warmup, duration time.Duration) error {
	// The default slack of 50 us would blur the due times.
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(l.epoll)
	l.limit, l.conns, l.statuses = conns, make(map[int]*rateConn), make(map[int]uint64)
	defer func() {
		for fd := range l.conns {
			unix.Close(fd)
		}
	}()
	if !l.lazy {
		for range conns {
			if _, err := l.connect(); err != nil {
				return fmt.Errorf("connect: %w", err)
			}
		}
		for patience := time.Now().Add(20 * time.Second); len(l.idle) < conns; {
			if time.Now().After(patience) {
				return fmt.Errorf("only %d of %d connections came about", len(l.idle), conns)
			}
			if err := l.poll(time.Second); err != nil {
				return err
			}
		}
	}
	begin := time.Now()
	l.counting = begin.Add(warmup)
	end := l.counting.Add(duration)
	grace := end.Add(2 * time.Second) // for the last answers
	next := begin
	for {
		now := time.Now()
		for l.free() && !next.After(now) && next.Before(end) {
			if err := l.send(next); err != nil {
				return err
			}
			next = next.Add(l.gap())
		}
		if now.After(grace) || !next.Before(end) && l.busy == 0 {
			break
		}
		wait := grace.Sub(now)
		if l.free() && next.Before(end) {
			wait = next.Sub(now)
		}
		if err := l.poll(wait); err != nil {
			return err
		}
	}
	if next.Before(end) { // every connection was busy when they fell due
		l.unsent = uint64(end.Sub(next) / l.interval)
	}
	l.took = duration
	for _, c := range l.conns {
		if c.busy && c.counted {
			l.unsent++
		}
	}
	return nil
}

// gap is the time from one request to the next.
func (l *openLoop) gap() time.Duration {
	if l.chance == nil {
		return l.interval
	}
	return time.Duration(l.chance.ExpFloat64() * float64(l.interval))
}

// free tells if there is, or may be, a connection for a further request.
func (l *openLoop) free() bool {
	return len(l.idle) > 0 || l.lazy && len(l.conns) < l.limit
}

// poll waits for events and handles them.
func (l *openLoop) poll(wait time.Duration) error {
	var events [256]unix.EpollEvent
	n, err := epollWait(l.epoll, events[:], wait)
	if err != nil {
		return err
	}
	for _, ev := range events[:n] {
		c := l.conns[int(ev.Fd)]
		if c.connecting {
			err = l.connected(c)
		} else {
			err = l.read(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// connect starts a connection.
func (l *openLoop) connect() (*rateConn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, l.addr); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, err
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(fd)}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	c := &rateConn{fd: fd, connecting: true}
	l.conns[fd] = c
	return c, nil
}

// connected goes on when a connection has come about, or has not.
func (l *openLoop) connected(c *rateConn) error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if code != 0 && !l.lazy {
		return fmt.Errorf("connect: %w", unix.Errno(code))
	}
	if code != 0 {
		return l.broken(c)
	}
	c.connecting = false
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}); err != nil {
		return err
	}
	if c.busy {
		return l.write(c)
	}
	l.idle = append(l.idle, c)
	return nil
}

// send starts the request that was due at the time. Of idle connections the one
// that has been idle longest is taken, so that all are used; or, when more are
// opened on need, the one that was used last, so that no more are.
func (l *openLoop) send(due time.Time) error {
	var c *rateConn
	switch n := len(l.idle); {
	case n == 0:
		var err error
		if c, err = l.connect(); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	case l.lazy:
		c, l.idle = l.idle[n-1], l.idle[:n-1]
	default:
		c = l.idle[0]
		copy(l.idle, l.idle[1:])
		l.idle = l.idle[:n-1]
	}
	l.busy++
	c.busy, c.due, c.counted, c.left = true, due, !due.Before(l.counting), inHead
	c.head = c.head[:0]
	if c.connecting {
		return nil
	}
	return l.write(c)
}

func (l *openLoop) write(c *rateConn) error {
	if _, err := unix.Write(c.fd, l.request); err != nil {
		return l.broken(c)
	}
	return nil
}

// read takes what arrived on a connection.
func (l *openLoop) read(c *rateConn) error {
	n, err := unix.Read(c.fd, l.buf[:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return nil
	}
	if err != nil || n == 0 || !c.busy {
		return l.broken(c)
	}
	p := l.buf[:n]
	if c.left == inHead {
		if len(c.head) > 0 {
			c.head = append(c.head, p...)
			p = c.head
		}
		end := bytes.Index(p, []byte("\r\n\r\n"))
		if end < 0 {
			if len(c.head) == 0 {
				c.head = append(c.head, p...)
			}
			return nil
		}
		if c.left, c.status, c.last, err = parseHead(p[:end+2]); err != nil {
			return l.broken(c)
		}
		p = p[end+4:]
	}
	if len(p) > c.left {
		return l.broken(c)
	}
	if c.left -= len(p); c.left > 0 {
		return nil
	}
	l.busy--
	c.busy = false
	if c.counted {
		l.answered(c)
	}
	if c.last {
		return l.broken(c)
	}
	l.idle = append(l.idle, c)
	return nil
}

// answered counts an answer.
func (l *openLoop) answered(c *rateConn) {
	took := time.Since(c.due)
	l.every.add(took)
	if l.statuses[c.status]++; c.status == 200 {
		l.latency.add(took)
		l.count(1, 0)
		return
	}
	l.errors++
	l.count(0, 1)
}

// count adds to the slot of now.
func (l *openLoop) count(good, errors uint64) {
	if l.span == 0 {
		return
	}
	i := int(time.Since(l.counting) / l.span)
	for len(l.slots) <= i {
		l.slots = append(l.slots, rig.Slot{})
	}
	l.slots[i].Good += good
	l.slots[i].Errors += errors
}

// broken gives a connection up and replaces it when there is a fixed number. A
// request on it is an error; closing an idle one is the server's right.
func (l *openLoop) broken(c *rateConn) error {
	if c.busy {
		l.busy--
		if c.counted {
			l.errors++
			l.count(0, 1)
		}
	}
	for i, idle := range l.idle {
		if idle == c {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			break
		}
	}
	unix.Close(c.fd)
	delete(l.conns, c.fd)
	if l.lazy {
		return nil
	}
	_, err := l.connect()
	return err
}

// parseHead returns the length of the body, the status, and whether the server
// closes the connection after it.
func parseHead(head []byte) (length, status int, last bool, err error) {
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	version, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < 3 {
		return 0, 0, false, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(rest[:3])); err != nil {
		return 0, 0, false, fmt.Errorf("status line %q", line)
	}
	last = string(version) != "HTTP/1.1"
	length = -1
	for line := range bytes.SplitSeq(fields, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, false, err
			}
		case bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(bytes.TrimSpace(value), []byte("close")):
			last = true
		}
	}
	if length < 0 {
		return 0, 0, false, errors.New("an answer without Content-Length")
	}
	return length, status, last, nil
}

// epollWait waits with a resolution of nanoseconds (epoll_pwait2, Linux 5.11).
func epollWait(epoll int, events []unix.EpollEvent, d time.Duration) (int, error) {
	ts := unix.NsecToTimespec(max(int64(d), 0))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno == unix.ENOSYS {
		return 0, errors.New("epoll_pwait2 needs Linux 5.11")
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
