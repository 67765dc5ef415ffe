package tlsterm

import (
	"crypto/tls"
	"errors"

	"github.com/headgate/headgate/dataplane/ir"
)

// certificate is a parsed ir.Certificate, or the reason why it is none.
type certificate struct {
	pair     tls.Certificate
	notAfter int64 // Unix seconds
	err      error
}

func parseCertificate(c *ir.Certificate) *certificate {
	if c == nil {
		return &certificate{err: errors.New("no certificate")}
	}
	// It also checks that the key belongs to the leaf.
	pair, err := tls.X509KeyPair(c.Chain, c.Key.Reveal())
	if err != nil {
		return &certificate{err: err}
	}
	return &certificate{pair: pair, notAfter: pair.Leaf.NotAfter.Unix()}
}

// host is a listener's name and its usable certificates, in the listener's
// order. It is immutable.
type host struct {
	listener     string
	certificates []*certificate
}

// certificate picks what to present to a client. Each wish is given up in turn:
// not expired, then covering the server name, then signing in a way that the
// client knows. now is in Unix seconds; 0 takes every certificate for valid.
//
// An expired certificate that is the only one is served: most clients refuse
// it, and tell their users why, which an alert of ours could not.
func (h *host) certificate(hello *tls.ClientHelloInfo, now int64) *tls.Certificate {
	if len(h.certificates) == 0 {
		return nil
	}
	if len(h.certificates) == 1 {
		return &h.certificates[0].pair
	}
	anyName := *hello
	anyName.ServerName = "" // SupportsCertificate looks at the algorithms only
	var best *certificate
	bestRank := -1
	for _, c := range h.certificates {
		if anyName.SupportsCertificate(&c.pair) != nil {
			continue
		}
		rank := 0
		if hello.ServerName == "" || c.pair.Leaf.VerifyHostname(hello.ServerName) == nil {
			rank += 2
		}
		if now <= c.notAfter {
			rank++
		}
		if rank > bestRank {
			best, bestRank = c, rank
		}
	}
	if best == nil {
		best = h.certificates[0] // crypto/tls finds the alert that says why not
	}
	return &best.pair
}
