package envtest

import (
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
	conns map[net.Conn]bool
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
	l.conns[c] = true
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
		_, _ = io.Copy(up, c) // either end may be gone
		up.Close()
	}()
	_, _ = io.Copy(c, up)
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
