package compile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/dataplane/ir"
)

// certificate is what a Secret means as a listener's certificate.
type certificate struct {
	cert  *ir.Certificate
	leaf  *x509.Certificate
	fault string // why cert is nil
}

// compileSecret reads a certificate out of a Secret. Its messages never quote
// the Secret's data.
func compileSecret(s *corev1.Secret) *certificate {
	if s.Type != corev1.SecretTypeTLS {
		return &certificate{fault: fmt.Sprintf("is of type %q; make it %q with the keys %s and %s",
			s.Type, corev1.SecretTypeTLS, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)}
	}
	chain, key := s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]
	switch {
	case len(chain) == 0:
		return &certificate{fault: "has no data under " + corev1.TLSCertKey}
	case len(key) == 0:
		return &certificate{fault: "has no data under " + corev1.TLSPrivateKeyKey}
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return &certificate{fault: "has no usable key pair: " + pairFault(chain, key, err)}
	}
	return &certificate{
		cert: &ir.Certificate{Name: s.Namespace + "/" + s.Name, Chain: chain, Key: ir.NewSecret(key)},
		leaf: pair.Leaf,
	}
}

// pairFault says which half of a key pair is at fault.
func pairFault(chain, key []byte, err error) string {
	switch {
	case !hasBlock(chain, func(t string) bool { return t == "CERTIFICATE" }):
		return corev1.TLSCertKey + " has no PEM block CERTIFICATE"
	case !hasBlock(key, func(t string) bool { return t == "PRIVATE KEY" || strings.HasSuffix(t, " PRIVATE KEY") }):
		return corev1.TLSPrivateKeyKey + " has no PEM block PRIVATE KEY"
	}
	// crypto/tls describes structures, never contents.
	return strings.TrimPrefix(err.Error(), "tls: ")
}

func hasBlock(data []byte, is func(kind string) bool) bool {
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			return false
		}
		if is(b.Type) {
			return true
		}
	}
}

// covers returns an error when clients that ask for the hostname would refuse the
// certificate's names.
func (c *certificate) covers(hostname string) error {
	if hostname == "" || c.leaf == nil {
		return nil
	}
	name := hostname
	if suffix, ok := strings.CutPrefix(hostname, "*."); ok {
		// One label in the wildcard's place is what a certificate can stand for.
		name = "x." + suffix
	}
	if c.leaf.VerifyHostname(name) == nil {
		return nil
	}
	if len(c.leaf.DNSNames) == 0 {
		return errors.New("it names no host")
	}
	return fmt.Errorf("it is for %s", strings.Join(c.leaf.DNSNames[:min(len(c.leaf.DNSNames), maxListed)], ", "))
}
