package envtest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// line is the way to the API server, which can be cut.
type line struct {
	target string
	ln     net.Listener

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]bool // whether what is sent on it is lost
}

// newLine returns a way to the API server, and the configuration that takes it.
func newLine(t *testing.T, config *rest.Config) (*line, *rest.Config) {
	t.Helper()
	config = rest.CopyConfig(config)
	target := config.Host
	if u, err := url.Parse(config.Host); err == nil && u.Host != "" {
		target = u.Host
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{target: target, ln: ln, conns: make(map[net.Conn]bool)}
	go l.run()
	t.Cleanup(func() {
		ln.Close()
		l.cut(true)
	})
	config.Host = "https://" + ln.Addr().String()
	return l, config
}

func (l *line) run() {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.serve(c)
	}
}

func (l *line) serve(c net.Conn) {
	defer c.Close()
	l.mu.Lock()
	away := l.away
	l.conns[c] = false
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
	if away {
		return
	}
	up, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		l.pass(up, c, c)
		up.Close()
	}()
	l.pass(c, up, c)
}

// pass passes on what comes from one end of the connection of a client, until
// either is gone.
func (l *line) pass(to io.Writer, from io.Reader, client net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		lost := l.conns[client]
		l.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// freeze loses what is sent on the connections that there are now, either way,
// without closing them. New ones are well.
func (l *line) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		l.conns[c] = true
	}
}

// dial connects to an address.
func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// cut ends all connections. While away no new one is made.
func (l *line) cut(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	for c := range l.conns {
		c.Close()
	}
}

// restore lets connections through again.
func (l *line) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = false
}
