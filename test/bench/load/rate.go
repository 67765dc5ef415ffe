//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rateResult is the outcome of an open-loop run. Latencies are in microseconds
// from the moment that a request was due, so that a stall of the proxy is
// counted for every request that it delayed (no coordinated omission).
type rateResult struct {
	Rate     float64 `json:"rate"`     // asked for, requests per second
	Achieved float64 `json:"achieved"` // answered, requests per second
	Requests uint64  `json:"requests"`
	Errors   uint64  `json:"errors"` // broken connections and other statuses than 200
	Unsent   uint64  `json:"unsent"` // due, but still waiting at the end
	P50      float64 `json:"p50_us"`
	P90      float64 `json:"p90_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
	Max      float64 `json:"max_us"`
}

func runRate(args []string) error {
	fs := flag.NewFlagSet("rate", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "Host field")
	path := fs.String("path", "/", "path of the request")
	conns := fs.Int("conns", 64, "connections")
	rate := fs.Float64("rate", 1000, "requests per second")
	duration := fs.Duration("duration", 5*time.Second, "how long requests fall due")
	warmup := fs.Duration("warmup", time.Second, "how long before that, without counting")
	fs.Parse(args)
	target, err := netip.ParseAddrPort(*addr)
	if err != nil {
		return err
	}
	l := &openLoop{
		addr:     &unix.SockaddrInet4{Port: int(target.Port()), Addr: target.Addr().As4()},
		request:  []byte("GET " + *path + " HTTP/1.1\r\nHost: " + *host + "\r\n\r\n"),
		interval: time.Duration(float64(time.Second) / *rate),
	}
	if err := l.run(*conns, *warmup, *duration); err != nil {
		return err
	}
	us := func(q float64) float64 { return float64(l.latency.quantile(q)) / 1e3 }
	return report(rateResult{
		Rate:     *rate,
		Achieved: float64(l.latency.count) / l.took.Seconds(),
		Requests: l.latency.count,
		Errors:   l.errors,
		Unsent:   l.unsent,
		P50:      us(0.5), P90: us(0.9), P99: us(0.99), P999: us(0.999), Max: float64(l.latency.max) / 1e3,
	})
}

// openLoop sends requests at fixed times over a set of connections, whether or
// not earlier ones have been answered. It is one thread on one epoll.
type openLoop struct {
	addr     unix.Sockaddr
	request  []byte
	interval time.Duration

	epoll   int
	conns   map[int]*rateConn
	idle    []*rateConn
	latency histogram
	errors  uint64
	unsent  uint64
	took    time.Duration
	buf     [64 << 10]byte
}

// rateConn is one keep-alive connection with at most one request under way.
type rateConn struct {
	fd      int
	due     time.Time // when its request was due
	counted bool
	head    []byte // of an answer that came in parts
	left    int    // bytes of the body still to come; -1 in the head
	bad     bool
}

func (l *openLoop) run(conns int, warmup, duration time.Duration) error {
	// The default slack of 50 us would blur the due times.
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(l.epoll)
	l.conns = make(map[int]*rateConn)
	for range conns {
		if err := l.connect(); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	begin := time.Now()
	counting := begin.Add(warmup)
	end := counting.Add(duration)
	grace := end.Add(2 * time.Second) // for the last answers
	next := begin
	events := make([]unix.EpollEvent, 256)
	for {
		now := time.Now()
		for len(l.idle) > 0 && !next.After(now) && next.Before(end) {
			if err := l.send(next, !next.Before(counting)); err != nil {
				return err
			}
			next = next.Add(l.interval)
		}
		if now.After(grace) || !next.Before(end) && len(l.idle) == len(l.conns) {
			break
		}
		wait := grace.Sub(now)
		if len(l.idle) > 0 && next.Before(end) {
			wait = next.Sub(now)
		}
		n, err := epollWait(l.epoll, events, wait)
		if err != nil {
			return err
		}
		for _, ev := range events[:n] {
			if err := l.read(l.conns[int(ev.Fd)]); err != nil {
				return err
			}
		}
	}
	if next.Before(end) { // every connection was busy when they fell due
		l.unsent = uint64(end.Sub(next) / l.interval)
	}
	l.took = duration
	for fd, c := range l.conns {
		if c.counted && c.left != done {
			l.unsent++
		}
		unix.Close(fd)
	}
	return nil
}

const (
	done   = -2
	inHead = -1
)

func (l *openLoop) connect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, l.addr); err != nil {
		unix.Close(fd)
		return err
	}
	unix.SetNonblock(fd, true)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		unix.Close(fd)
		return err
	}
	c := &rateConn{fd: fd, left: done}
	l.conns[fd] = c
	l.idle = append(l.idle, c)
	return nil
}

// send starts the request that was due at the time on an idle connection. The
// one that has been idle longest is taken, so that all are used.
func (l *openLoop) send(due time.Time, counted bool) error {
	c := l.idle[0]
	copy(l.idle, l.idle[1:])
	l.idle = l.idle[:len(l.idle)-1]
	c.due, c.counted, c.left, c.bad = due, counted, inHead, false
	c.head = c.head[:0]
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
	if err != nil || n == 0 || c.left == done {
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
		c.left, c.bad = parseHead(p[:end+2])
		p = p[end+4:]
	}
	if len(p) > c.left {
		return l.broken(c)
	}
	if c.left -= len(p); c.left > 0 {
		return nil
	}
	c.left = done
	if c.counted {
		if c.bad {
			l.errors++
		} else {
			l.latency.add(time.Since(c.due))
		}
	}
	l.idle = append(l.idle, c)
	return nil
}

// broken counts an error and replaces the connection.
func (l *openLoop) broken(c *rateConn) error {
	if c.counted {
		l.errors++
	}
	for i, idle := range l.idle {
		if idle == c {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			break
		}
	}
	unix.Close(c.fd)
	delete(l.conns, c.fd)
	return l.connect()
}

// parseHead returns the length of the body and tells if the status is not 200.
func parseHead(head []byte) (length int, bad bool) {
	bad = !bytes.HasPrefix(head, []byte("HTTP/1.1 200"))
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && bytes.EqualFold(name, []byte("content-length")) {
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return n, bad || err != nil
		}
	}
	return 0, true
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
