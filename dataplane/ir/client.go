package ir

import (
	"errors"
	"net/netip"
	"time"
)

// Client bounds what the clients of a socket may keep it waiting for, and says
// whom of them to trust. Zero values mean what the process was started with.
type Client struct {
	// HeaderTimeout is the time from a request's first byte to the end of its head.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may be without a request.
	IdleTimeout time.Duration
	// BodyTimeout is how long a body that is being read may make no progress.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take nothing of what waits for it.
	WriteTimeout time.Duration
	// MaxRequests is how many requests one connection may carry.
	MaxRequests uint32
	// TrustedProxies are the peers whose forwarded headers are kept, in the place of
	// the process's. Nil leaves those; empty trusts nobody.
	TrustedProxies []netip.Prefix
	// ProxiedFrom makes the socket speak the PROXY protocol, and names the peers that
	// may: each connection begins with a header that says who the client is, and
	// other connections are closed. Nil does not.
	ProxiedFrom []netip.Prefix
	// MaxRequestLine, MaxHeaderBytes and MaxHeaders bound a request's head: the bytes
	// of its first line, the bytes of its fields, and their number.
	MaxRequestLine, MaxHeaderBytes, MaxHeaders int
}

func (c *Client) validate() error {
	if c.HeaderTimeout < 0 || c.IdleTimeout < 0 || c.BodyTimeout < 0 || c.WriteTimeout < 0 {
		return errors.New("a client's timeout is negative")
	}
	if c.MaxRequestLine < 0 || c.MaxHeaderBytes < 0 || c.MaxHeaders < 0 {
		return errors.New("a limit of heads is negative")
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return errors.New("a trusted prefix is malformed")
		}
	}
	if c.ProxiedFrom != nil && len(c.ProxiedFrom) == 0 {
		return errors.New("the PROXY protocol is required, but nobody may speak it")
	}
	for _, p := range c.ProxiedFrom {
		if !p.IsValid() {
			return errors.New("a prefix of the PROXY protocol's peers is malformed")
		}
	}
	return nil
}

func (w *digest) client(c *Client) {
	for _, d := range []time.Duration{c.HeaderTimeout, c.IdleTimeout, c.BodyTimeout, c.WriteTimeout} {
		w.int(int64(d))
	}
	w.num(uint64(c.MaxRequests))
	for _, list := range [][]netip.Prefix{c.TrustedProxies, c.ProxiedFrom} {
		w.flag(list != nil)
		w.count(len(list))
		for _, p := range list {
			w.str(p.String())
		}
	}
	for _, n := range []int{c.MaxRequestLine, c.MaxHeaderBytes, c.MaxHeaders} {
		w.int(int64(n))
	}
}
