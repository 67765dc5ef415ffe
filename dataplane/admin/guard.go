package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// guard refuses what has no business here: methods that write; names that are
// not the loopback's on a connection that came over the loopback, because a
// foreign page whose name was rebound to 127.0.0.1 would read all of this with
// the browser's help; and what a browser sends for another site's page.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.ContentLength != 0 {
			// No page takes a body, and net/http would wait for its end for ever.
			h.Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(0, 1)) // long ago; an error is the connection's end
		}
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are served", http.StatusMethodNotAllowed)
		case overLoopback(r) && !loopbackHost(r.Host):
			http.Error(w, "the Host must be localhost or a loopback address", http.StatusMisdirectedRequest)
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			http.Error(w, "not for the pages of other sites", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// overLoopback tells whether the connection's own end is a loopback address.
func overLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// loopbackHost tells whether a Host field names the loopback.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
