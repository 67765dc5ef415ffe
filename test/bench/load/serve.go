//go:build linux

package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
)

// runServe is a backend: /large answers with a large body, /sink reads a body
// slowly, and anything else is never answered.
func runServe(args []string) error {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := fs.String("listen", "127.0.0.1:9001", "address")
	size := fs.Int64("size", 256<<20, "bytes of the large body")
	rate := fs.Int("bytes-per-second", 10_000, "that the sink takes from each connection")
	fs.Parse(args)
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	if err := report(map[string]string{"listening": ln.Addr().String()}); err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			br := bufio.NewReaderSize(c, 1024)
			line, err := br.ReadString('\n')
			for field := line; err == nil && field != "\r\n"; {
				field, err = br.ReadString('\n')
			}
			if err != nil {
				return
			}
			switch {
			case strings.Contains(line, "/large"):
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", *size)
				for left := *size; left > 0; {
					n, err := c.Write(block[:min(left, int64(len(block)))])
					if left -= int64(n); err != nil {
						return
					}
				}
			case strings.Contains(line, "/sink"):
				var count atomic.Int64
				slowly(br, *rate, &count)
			default:
				io.Copy(io.Discard, br) // until the proxy gives up
			}
		}()
	}
}
