package filter

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate/dataplane/ir"
)

// redirect answers with a Location.
type redirect struct{ ir.Redirect }

func (f *redirect) Request(x *Exchange) bool {
	r := x.Request
	scheme := f.Scheme
	if scheme == "" {
		scheme = "http"
		if r.Secure {
			scheme = "https"
		}
	}
	path := r.Path
	if f.Path != nil {
		path = changePath(&r.Headers, f.Path, x.Prefix, path)
	}
	var b strings.Builder
	if host := f.host(x); host != "" {
		b.WriteString(scheme)
		b.WriteString("://")
		b.WriteString(host)
		if port := f.port(x, scheme); port != 0 {
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(int(port)))
		}
	} else if len(path) > 1 && path[1] == '/' {
		// Without an authority, "//x" would name one (RFC 3986, 4.2).
		b.WriteString("/.")
	}
	b.Write(path)
	if r.HasQuery {
		b.WriteByte('?')
		b.Write(r.Query)
	}
	x.Answer = Answer{Status: f.Status, Location: b.String()}
	return false
}

func (f *redirect) host(x *Exchange) string {
	if f.Hostname != "" {
		return f.Hostname
	}
	return string(x.Host)
}

// port returns the port to write, 0 for none (Gateway API, HTTPRequestRedirect
// port): the configured one; else the well-known one of a configured scheme;
// else the listener's. A scheme's well-known port is left out.
func (f *redirect) port(x *Exchange, scheme string) uint16 {
	known := map[string]uint16{"http": 80, "https": 443}[scheme]
	port := f.Port
	if port == 0 {
		port = x.Port
		if f.Scheme != "" && known != 0 {
			port = known
		}
	}
	if port == known {
		return 0
	}
	return port
}
