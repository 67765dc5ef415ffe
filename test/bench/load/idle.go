//go:build linux

package main

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// held tells how many connections are open.
type held struct {
	Open       int64  `json:"open"`
	Errors     int64  `json:"errors"`
	FirstError string `json:"first_error,omitempty"`
}

// runIdle opens connections, makes one request on each, reports, and keeps them
// until standard input ends. Then it reports how many are still open.
func runIdle(args []string) error {
	fs := flag.NewFlagSet("idle", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "SNI and Host field")
	conns := fs.Int("conns", 9000, "connections")
	useTLS := fs.Bool("tls", false, "with TLS")
	fs.Parse(args)

	var mu sync.Mutex
	var res held
	var open []net.Conn
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(*conns))
	for range 32 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				c, err := openIdle(*addr, *host, *useTLS)
				mu.Lock()
				if err != nil {
					res.Errors++
					res.FirstError = err.Error()
				} else {
					open = append(open, c)
					res.Open++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := report(res); err != nil {
		return err
	}
	io.Copy(io.Discard, os.Stdin)
	for _, c := range open {
		if ended(c) {
			res.Open--
		}
	}
	return report(res)
}

// ended tells if the proxy has closed a connection.
func ended(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = err == nil && n == 0 || err != nil && err != unix.EAGAIN
	})
	return closed || err != nil
}

func openIdle(addr, host string, useTLS bool) (net.Conn, error) {
	raw, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	c := raw
	if useTLS {
		c = tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 2048), nil)
	if err != nil {
		return nil, err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Close {
		return nil, fmt.Errorf("status %s, close %v", resp.Status, resp.Close)
	}
	return c, nil
}

// pause is how long a client that was refused waits: about a second, or a little
// more than Retry-After says if it heeds that.
func pause(h http.Header, heed bool) time.Duration {
	after, err := strconv.Atoi(h.Get("Retry-After"))
	if !heed || err != nil || after <= 0 || after > 3600 {
		return time.Second/2 + rand.N(time.Second)
	}
	told := time.Duration(after) * time.Second
	return told + rand.N(told/2)
}

// runHold keeps a number of requests under way to a backend that hangs: one
// that is refused is sent again about a second later: not all at once, or the
// proxy would see one burst each second. A client that heeds comes again when
// Retry-After tells it to. It ends with standard input.
func runHold(args []string) error {
	fs := flag.NewFlagSet("hold", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "Host field")
	path := fs.String("path", "/hung", "path of the request")
	conns := fs.Int("conns", 5000, "requests at once")
	heed := fs.Bool("heed", false, "heed Retry-After")
	fs.Parse(args)

	var sent, refused, failed atomic.Int64
	for range *conns {
		go func() {
			for {
				c, err := net.DialTimeout("tcp", *addr, 10*time.Second)
				if err != nil {
					failed.Add(1)
					time.Sleep(time.Second)
					continue
				}
				io.WriteString(c, "GET "+*path+" HTTP/1.1\r\nHost: "+*host+"\r\n\r\n")
				sent.Add(1)
				br := bufio.NewReaderSize(c, 1024)
				for { // until the answers end, or the connection
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						failed.Add(1)
						break
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					refused.Add(1)
					time.Sleep(pause(resp.Header, *heed))
					if resp.Close {
						break
					}
					io.WriteString(c, "GET "+*path+" HTTP/1.1\r\nHost: "+*host+"\r\n\r\n")
				}
				c.Close()
			}
		}()
	}
	for sent.Load()+failed.Load() < int64(*conns) {
		time.Sleep(10 * time.Millisecond)
	}
	counts := func() map[string]int64 {
		return map[string]int64{"sent": sent.Load(), "refused": refused.Load(), "failed": failed.Load()}
	}
	if err := report(counts()); err != nil {
		return err
	}
	io.Copy(io.Discard, os.Stdin)
	return report(counts())
}
