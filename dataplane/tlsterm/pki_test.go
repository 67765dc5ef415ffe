package tlsterm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

// authority signs the certificates of a test. All of one kind share a key: an
// RSA key takes long.
type authority struct {
	cert *x509.Certificate
	pool *x509.CertPool
	keys map[string]crypto.Signer
}

// key returns the key of a kind: ecdsa, rsa or ed25519.
func (a *authority) key(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	if k := a.keys[kind]; k != nil {
		return k
	}
	var k crypto.Signer
	var err error
	switch kind {
	case "ecdsa":
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, k, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("unknown kind of key %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.keys[kind] = k
	return k
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool(), keys: map[string]crypto.Signer{}}
	key := a.key(t, "ecdsa")
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate; its common name is name, its subject alternative
// names are hosts.
func (a *authority) issue(t testing.TB, kind, name string, notAfter time.Time, hosts ...string) *ir.Certificate {
	t.Helper()
	key := a.key(t, kind)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: notAfter.Add(-48 * time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key(t, "ecdsa"))
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Certificate{
		Name:  "test/" + name,
		Chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:   ir.NewSecret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}
}

func tomorrow() time.Time  { return time.Now().Add(24 * time.Hour) }
func yesterday() time.Time { return time.Now().Add(-24 * time.Hour) }

// listener returns a listener whose name is that of its hostname.
func listener(hostname string, certs ...*ir.Certificate) *ir.Listener {
	return &ir.Listener{Name: "test/gw/" + hostname, Hostname: hostname, TLS: &ir.TLS{Certificates: certs}}
}
