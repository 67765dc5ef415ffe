//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// stampHeader carries what a route's filter says to the backend.
const stampHeader = "X-Stamp"

// backend is an HTTP server that answers its own name, the stamp of the request
// and its path: "a stamp /path".
type backend struct {
	name   string
	addr   netip.AddrPort
	server *http.Server
}

// hostAddress returns an address of this machine that may be an endpoint: neither
// the API server nor the controller takes a loopback address for one.
func hostAddress() (netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this machine has no IPv4 address besides the loopback, which can't be the endpoint of a Service; give it one, such as on a dummy interface")
}

func startBackend(name string, host netip.Addr) (*backend, error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		return nil, fmt.Errorf("start a backend: %w", err)
	}
	b := &backend{name: name, addr: ln.Addr().(*net.TCPAddr).AddrPort()}
	b.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s %s", name, r.Header.Get(stampHeader), r.URL.Path)
		}),
	}
	go b.server.Serve(ln) // until close
	return b, nil
}

func (b *backend) close() { b.server.Close() }

func (b *backend) host() string { return b.addr.Addr().String() }
func (b *backend) port() int    { return int(b.addr.Port()) }
