package compile_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// certify puts a key pair into a Secret whose certificate reads "TEST CERTIFICATE
// host...": no private key is kept in the repository. The pair is the same in
// every run.
func certify(t *testing.T, s *corev1.Secret) {
	t.Helper()
	names, ok := strings.CutPrefix(string(s.Data[corev1.TLSCertKey]), "TEST CERTIFICATE")
	if !ok {
		return
	}
	hosts := strings.Fields(names)
	s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = keyPair(t, s.Name, hosts, big.NewInt(1))
}

// keyPair makes a key pair out of a name.
func keyPair(t *testing.T, name string, hosts []string, serial *big.Int) (chain, key []byte) {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	private := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     hosts,
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func bigInt(n int64) *big.Int { return big.NewInt(n) }
