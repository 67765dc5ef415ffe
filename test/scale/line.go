//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// line is one keep-alive connection to the gateway. It is for one goroutine.
type line struct {
	gateway string
	conn    net.Conn
	in      *bufio.Reader
}

// answer is what came back.
type answer struct {
	status   int
	location string
	body     string
}

// String is the answer as a route's state says it: "200 a stamp /path".
func (a answer) String() string {
	if a.location != "" {
		return fmt.Sprintf("%d %s", a.status, a.location)
	}
	return fmt.Sprintf("%d %s", a.status, a.body)
}

// get sends one request, over a new connection if need be.
func (c *line) get(host, path string) (answer, error) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.gateway)
		if err != nil {
			return answer{}, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	a, keep, err := c.exchange(host, path)
	if err != nil || !keep {
		c.close()
	}
	return a, err
}

func (c *line) exchange(host, path string) (a answer, keep bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return a, false, err
	}
	if _, err := io.WriteString(c.conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return a, false, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return a, false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header.Get("Location"), string(body)}, !res.Close, err
}

func (c *line) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// lines are several connections, so that all loops of the gateway are asked.
func (l *lab) lines(n int) []*line {
	out := make([]*line, n)
	for i := range out {
		out[i] = &line{gateway: l.gateway}
	}
	return out
}

func closeAll(all []*line) {
	for _, c := range all {
		c.close()
	}
}
