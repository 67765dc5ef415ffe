package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/websocket"
)

// target is what a load asks for.
type target struct {
	addr string // host and port of the gateway
	host string // the Host field
	path string
}

// load is clients at work. None of them tries a request again: what a gateway
// loses is a failure, whether a patient client would have hidden it or not.
type load struct {
	target
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	requests int
	failures []failure
}

// failure is one request that got no right answer.
type failure struct {
	at   time.Time
	kind string
	err  error
}

func (f failure) String() string {
	return fmt.Sprintf("%s %s: %v", f.at.Format("15:04:05.000"), f.kind, f.err)
}

// pace is between two requests of a client.
const pace = 5 * time.Millisecond

// patience is how long a client waits for an answer.
const patience = 10 * time.Second

// newLoad starts clients that keep their connection, clients that open one for
// each request, and WebSockets that say something every pace.
func newLoad(to target, keepAlive, fresh, sockets int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{target: to, stop: cancel}
	for range keepAlive {
		l.done.Go(func() { l.keepAlive(ctx) })
	}
	for range fresh {
		l.done.Go(func() { l.fresh(ctx) })
	}
	for range sockets {
		l.done.Go(func() { l.socket(ctx) })
	}
	return l
}

// end stops the clients and returns how many requests, or messages of a
// WebSocket, were answered, and what failed.
func (l *load) end() (requests int, failures []failure) {
	l.stop()
	l.done.Wait()
	return l.requests, l.failures
}

// count notes a request's outcome. What the end of the load cut is no failure.
func (l *load) count(ctx context.Context, kind string, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, failure{at: time.Now(), kind: kind, err: err})
		return
	}
	l.requests++
}

// answered returns the number of answers so far.
func (l *load) answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// keepAlive sends requests over one connection, and over another one when an
// answer says that it is the connection's last.
func (l *load) keepAlive(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := dial(ctx, l.addr)
		if err != nil {
			l.count(ctx, "keep-alive", err)
			wait(ctx, pace)
			continue
		}
		in := bufio.NewReader(conn)
		for ctx.Err() == nil {
			last, err := l.exchange(conn, in, false)
			l.count(ctx, "keep-alive", err)
			if last || err != nil {
				break
			}
			wait(ctx, pace)
		}
		_ = conn.Close()
	}
}

// fresh sends each request over a connection of its own.
func (l *load) fresh(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := dial(ctx, l.addr)
		if err == nil {
			_, err = l.exchange(conn, bufio.NewReader(conn), true)
			_ = conn.Close()
		}
		l.count(ctx, "one connection per request", err)
		wait(ctx, pace)
	}
}

// exchange sends one request and reads the answer.
func (l *load) exchange(conn net.Conn, in *bufio.Reader, last bool) (ended bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return true, err
	}
	var request bytes.Buffer
	fmt.Fprintf(&request, "GET %s HTTP/1.1\r\nHost: %s\r\n", l.path, l.host)
	if last {
		request.WriteString("Connection: close\r\n")
	}
	request.WriteString("\r\n")
	if _, err := conn.Write(request.Bytes()); err != nil {
		return true, err
	}
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return true, err
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return true, err
	}
	if response.StatusCode != http.StatusOK {
		return response.Close, fmt.Errorf("status %s", response.Status)
	}
	return response.Close, nil
}

// socket opens a WebSocket and talks until the load ends. One that is dropped is
// a failure and stays dropped.
func (l *load) socket(ctx context.Context) {
	config, err := websocket.NewConfig("ws://"+l.host+"/ws", "http://"+l.host)
	if err != nil {
		l.count(ctx, "WebSocket", err)
		return
	}
	conn, err := dial(ctx, l.addr)
	if err != nil {
		l.count(ctx, "WebSocket", err)
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil { // of the handshake, too
		l.count(ctx, "WebSocket", err)
		return
	}
	ws, err := websocket.NewClient(config, conn)
	for n := 0; err == nil && ctx.Err() == nil; n++ {
		if err = conn.SetDeadline(time.Now().Add(patience)); err != nil {
			break
		}
		said, heard := fmt.Sprint("message ", n), ""
		if err = websocket.Message.Send(ws, said); err == nil {
			err = websocket.Message.Receive(ws, &heard)
		}
		if err == nil && heard != said {
			err = fmt.Errorf("said %q, heard %q", said, heard)
		}
		if err == nil {
			l.count(ctx, "WebSocket", nil)
			wait(ctx, 10*pace)
		}
	}
	if err != nil {
		l.count(ctx, "WebSocket", fmt.Errorf("dropped: %w", err))
	}
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, "tcp", addr)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// get sends one request over a new connection and returns the answer's status.
func (to target) get(ctx context.Context) (status int, err error) {
	conn, err := dial(ctx, to.addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", to.path, to.host); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// until asks until the answer has the status.
func (to target) until(ctx context.Context, status int) error {
	for {
		got, err := to.get(ctx)
		if err == nil && got == status {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s%s at %s: no %d: last status %d, %w", to.host, to.path, to.addr, status, got, errors.Join(err, ctx.Err()))
		}
		wait(ctx, 20*time.Millisecond)
	}
}

// untilGone asks until nobody listens any more.
func (to target) untilGone(ctx context.Context) error {
	for {
		status, err := to.get(ctx)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s still answers: last status %d, %w", to.addr, status, errors.Join(err, ctx.Err()))
		}
		wait(ctx, 20*time.Millisecond)
	}
}
