//go:build linux

package main

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// handshakeResult is the outcome of a closed loop of full handshakes, each with
// one request.
type handshakeResult struct {
	PerSecond  float64 `json:"per_second"`
	Handshakes uint64  `json:"handshakes"`
	Errors     uint64  `json:"errors"`
	FirstError string  `json:"first_error,omitempty"`
	P50        float64 `json:"p50_us"` // of the whole connection
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
}

func runHandshake(args []string) error {
	fs := flag.NewFlagSet("handshake", flag.ExitOnError)
	addr := fs.String("addr", "127.0.0.1:8443", "proxy's address")
	host := fs.String("host", "bench.example", "SNI and Host field")
	workers := fs.Int("conns", 16, "connections at once")
	duration := fs.Duration("duration", 5*time.Second, "how long")
	fs.Parse(args)

	var mu sync.Mutex
	var all histogram
	var res handshakeResult
	var wg sync.WaitGroup
	begin := time.Now()
	end := begin.Add(*duration)
	for range *workers {
		wg.Go(func() {
			for time.Now().Before(end) {
				start := time.Now()
				err := handshakeOnce(*addr, *host)
				mu.Lock()
				if err != nil {
					res.Errors++
					res.FirstError = err.Error()
				} else {
					all.add(time.Since(start))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	us := func(q float64) float64 { return float64(all.quantile(q)) / 1e3 }
	res.Handshakes = all.count
	res.PerSecond = float64(all.count) / time.Since(begin).Seconds()
	res.P50, res.P99, res.P999 = us(0.5), us(0.99), us(0.999)
	return report(res)
}

// handshakeOnce makes a full handshake (no tickets), one request and an end.
func handshakeOnce(addr, host string) error {
	raw, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(10 * time.Second))
	c := tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true, SessionTicketsDisabled: true,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}})
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
