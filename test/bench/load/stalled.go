//go:build linux

package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// moved tells how many bytes went by and how many streams broke.
type moved struct {
	Streams int64 `json:"streams"`
	Bytes   int64 `json:"bytes"`
	Errors  int64 `json:"errors"`
}

// runSlowRead asks for a large answer on each of some connections and reads it
// slowly, until standard input ends.
func runSlowRead(args []string) error {
	fs := flag.NewFlagSet("read", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "Host field")
	path := fs.String("path", "/large", "path of the request")
	conns := fs.Int("conns", 200, "connections")
	rate := fs.Int("bytes-per-second", 10_000, "of each connection")
	fs.Parse(args)
	return streams(*conns, func(count *atomic.Int64) error {
		c, err := net.Dial("tcp", *addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", *path, *host); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1024), nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", resp.Status)
		}
		return slowly(resp.Body, *rate, count)
	})
}

// runUpload sends a large request on each of some connections, as fast as it is
// taken, until standard input ends.
func runUpload(args []string) error {
	fs := flag.NewFlagSet("write", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8080", "proxy's address")
	host := fs.String("host", "bench.example", "Host field")
	path := fs.String("path", "/sink", "path of the request")
	conns := fs.Int("conns", 200, "connections")
	size := fs.Int64("size", 256<<20, "bytes of each request's body")
	fs.Parse(args)
	block := make([]byte, 32<<10)
	return streams(*conns, func(count *atomic.Int64) error {
		c, err := net.Dial("tcp", *addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", *path, *host, *size); err != nil {
			return err
		}
		for left := *size; left > 0; {
			n, err := c.Write(block[:min(left, int64(len(block)))])
			count.Add(int64(n))
			left -= int64(n)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// streams runs n streams until standard input ends and reports them.
func streams(n int, run func(count *atomic.Int64) error) error {
	var bytes, errors atomic.Int64
	for range n {
		go func() {
			if err := run(&bytes); err != nil {
				errors.Add(1)
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	return report(moved{Streams: int64(n), Bytes: bytes.Load(), Errors: errors.Load()})
}

// slowly reads r at a number of bytes per second, in ten portions.
func slowly(r io.Reader, rate int, count *atomic.Int64) error {
	buf := make([]byte, max(rate/10, 1))
	for {
		n, err := io.ReadFull(r, buf)
		count.Add(int64(n))
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
