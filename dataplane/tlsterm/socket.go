package tlsterm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/dataplane/ir"
)

// maxServerName is the longest server name that is looked up (RFC 1035, 2.3.4).
const maxServerName = 255

// Socket has the listeners of one listening socket. Its methods may be called
// from any goroutine.
type Socket struct {
	t       *Terminator
	current atomic.Pointer[generation]
	update  sync.Mutex // one Update at a time
}

// Update replaces the listeners; the next handshake uses them. Connections that
// are open stay. A certificate that was there before, as the same pointer, is
// not parsed again.
//
// The error joins one [CertificateError] for each certificate that can't be
// used, and everything else that is wrong with a listener. It is a report: the
// update took place, and what is wrong breaks the listener that it names only.
// A listener without a usable certificate refuses its handshakes.
func (s *Socket) Update(listeners []*ir.Listener) error {
	s.update.Lock()
	defer s.update.Unlock()
	old := s.current.Load().parsed
	parsed := make(map[*ir.Certificate]*certificate, len(old))
	hosts := make(map[string]*host, len(listeners))
	var errs []error
	for _, l := range listeners {
		if _, taken := hosts[l.Hostname]; taken {
			errs = append(errs, fmt.Errorf("listener %s: hostname %q is taken by another listener", l.Name, l.Hostname))
			continue
		}
		h := &host{listener: l.Name}
		hosts[l.Hostname] = h
		if l.TLS == nil {
			errs = append(errs, fmt.Errorf("listener %s: no tls settings", l.Name))
			continue
		}
		for _, c := range l.TLS.Certificates {
			p := parsed[c]
			if p == nil {
				if p = old[c]; p == nil {
					p = parseCertificate(c)
				}
				parsed[c] = p
			}
			if p.err != nil {
				name := ""
				if c != nil {
					name = c.Name
				}
				errs = append(errs, &CertificateError{Listener: l.Name, Certificate: name, Err: p.err})
				continue
			}
			h.certificates = append(h.certificates, p)
		}
	}
	s.current.Store(newGeneration(s.t, hosts, parsed))
	return errors.Join(errs...)
}

// generation is what one Update made. It is immutable, and all handshakes that
// begin under it share its config.
type generation struct {
	t      *Terminator
	config *tls.Config
	hosts  map[string]*host // by ir.Listener.Hostname
	parsed map[*ir.Certificate]*certificate
}

func newGeneration(t *Terminator, hosts map[string]*host, parsed map[*ir.Certificate]*certificate) *generation {
	g := &generation{t: t, hosts: hosts, parsed: parsed}
	g.config = &tls.Config{
		MinVersion: tls.VersionTLS12,
		// TLS 1.2: forward secrecy and AEAD only. TLS 1.3 has nothing else.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		NextProtos:     t.protos,
		GetCertificate: g.certificate,
		WrapSession:    g.wrap,
		UnwrapSession:  g.unwrap,
	}
	return g
}

// certificate is the config's GetCertificate. It is not asked when a session is
// resumed.
func (g *generation) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	h, err := g.host(hello.ServerName)
	if err != nil {
		hello.Conn.(*wire).hs.refusal = err
		// No certificate and no error makes crypto/tls send unrecognized_name
		// (RFC 6066, 3), which is right for both errors of host; an error would
		// make it send internal_error.
		return nil, nil
	}
	return h.certificate(hello, g.t.now.Load()), nil
}

func (g *generation) wrap(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
	h, err := g.host(cs.ServerName)
	if err != nil {
		return nil, err // never: the handshake was refused before
	}
	return g.t.tickets.wrap(cs, ss, h)
}

func (g *generation) unwrap(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	h, err := g.host(cs.ServerName)
	if err != nil {
		return nil, nil // a full handshake, which certificate refuses
	}
	return g.t.tickets.unwrap(ticket, cs, h), nil
}

// host returns the listener of a server name, which may be in any case: the
// exact one, else the longest wildcard (one or more labels), else the one for
// any host. A client without a server name gets the last one only: which of
// the others it wants can't be told, and a listener never stands in for
// another. The error is ErrUnknownName or ErrNoCertificate.
func (g *generation) host(serverName string) (*host, error) {
	h := g.lookup(lower(serverName))
	switch {
	case h == nil:
		return nil, ErrUnknownName
	case len(h.certificates) == 0:
		return nil, fmt.Errorf("listener %s: %w", h.listener, ErrNoCertificate)
	}
	return h, nil
}

// lookup is host for a name in lower case; nil when nobody serves it.
func (g *generation) lookup(name string) *host {
	if h := g.hosts[name]; h != nil {
		return h
	}
	if len(name) <= maxServerName { // the loop is quadratic
		for i := 1; i < len(name); i++ {
			if name[i] != '.' {
				continue
			}
			if h := g.hosts["*"+name[i:]]; h != nil {
				return h
			}
		}
	}
	return g.hosts[""]
}

// lower returns s with A-Z in lower case.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}
