package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// lifetime is how long a certificate is valid. No test cluster lives that long.
const lifetime = 365 * 24 * time.Hour

// skew is how far a certificate's validity begins in the past, for clocks that
// are set back while a cluster is up.
const skew = time.Hour

// Authority signs certificates. It is safe for use by several goroutines.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pair        Pair
}

// Request says whom a certificate is for.
type Request struct {
	CommonName   string
	Organization []string     // Kubernetes takes them as the user's groups
	DNSNames     []string     // a server's names
	Addresses    []netip.Addr // a server's addresses
	Server       bool         // for a server; else for a client
}

// NewAuthority returns an authority with a new key, which signs its own
// certificate, valid from an hour before now for a year.
func NewAuthority(commonName string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of authority %s: %w", commonName, err)
	}
	template, err := newTemplate(commonName, now)
	if err != nil {
		return nil, err
	}
	template.BasicConstraintsValid = true
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	certificate, pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of authority %s: %w", commonName, err)
	}
	return &Authority{certificate: certificate, key: key, pair: pair}, nil
}

// Pair returns the authority's own certificate and key.
func (a *Authority) Pair() Pair { return a.pair }

// Issue returns a new key and its certificate, valid from an hour before now
// for a year.
func (a *Authority) Issue(r Request, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", r.CommonName, err)
	}
	template, err := newTemplate(r.CommonName, now)
	if err != nil {
		return Pair{}, err
	}
	template.Subject.Organization = r.Organization
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if r.Server {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	template.DNSNames = r.DNSNames
	for _, address := range r.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	_, pair, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("make the certificate of %s: %w", r.CommonName, err)
	}
	return pair, nil
}

func newTemplate(commonName string, now time.Time) (*x509.Certificate, error) {
	// RFC 5280, section 4.1.2.2: positive and at most 20 octets.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make the serial number of %s: %w", commonName, err)
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, Pair{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, Pair{}, err
	}
	private, err := encodePrivate(key)
	if err != nil {
		return nil, Pair{}, err
	}
	return certificate, Pair{Certificate: encodeBlock("CERTIFICATE", der), Key: private}, nil
}
