package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) (*Authority, *x509.CertPool) {
	t.Helper()
	authority, err := NewAuthority("test-ca", now)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority.Pair().Certificate) {
		t.Fatal("the authority's certificate is not PEM")
	}
	return authority, pool
}

func issue(t *testing.T, authority *Authority, r Request) *x509.Certificate {
	t.Helper()
	pair, err := authority.Issue(r, now)
	if err != nil {
		t.Fatal(err)
	}
	// X509KeyPair also checks that the key is the certificate's.
	loaded, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(loaded.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestIssueServer(t *testing.T) {
	authority, pool := newAuthority(t)
	certificate := issue(t, authority, Request{
		CommonName: "kube-apiserver",
		DNSNames:   []string{"kubernetes.default.svc"},
		Addresses:  []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("::1")},
		Server:     true,
	})
	for _, tc := range []struct {
		name  string
		host  string
		at    time.Time
		usage x509.ExtKeyUsage
		valid bool
	}{
		{"by name", "kubernetes.default.svc", now, x509.ExtKeyUsageServerAuth, true},
		{"by address", "10.96.0.1", now, x509.ExtKeyUsageServerAuth, true},
		{"by IPv6 address", "::1", now, x509.ExtKeyUsageServerAuth, true},
		{"a clock half an hour behind", "10.96.0.1", now.Add(-30 * time.Minute), x509.ExtKeyUsageServerAuth, true},
		{"another name", "kubernetes.example", now, x509.ExtKeyUsageServerAuth, false},
		{"as a client", "10.96.0.1", now, x509.ExtKeyUsageClientAuth, false},
		{"after a year", "10.96.0.1", now.Add(366 * 24 * time.Hour), x509.ExtKeyUsageServerAuth, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := certificate.Verify(x509.VerifyOptions{
				DNSName: tc.host, Roots: pool, CurrentTime: tc.at, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if (err == nil) != tc.valid {
				t.Errorf("valid = %v, want %v (%v)", err == nil, tc.valid, err)
			}
		})
	}
}

func TestIssueClient(t *testing.T) {
	authority, pool := newAuthority(t)
	certificate := issue(t, authority, Request{CommonName: "system:node:node1", Organization: []string{"system:nodes"}})
	if diff := cmp.Diff([]string{"system:nodes"}, certificate.Subject.Organization); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if got := certificate.Subject.CommonName; got != "system:node:node1" {
		t.Errorf("user %q", got)
	}
	verify := func(usage x509.ExtKeyUsage) error {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	if err := verify(x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("as a client: %v", err)
	}
	if err := verify(x509.ExtKeyUsageServerAuth); err == nil {
		t.Error("a client's certificate is taken for a server's")
	}
}

func TestAuthoritiesDiffer(t *testing.T) {
	one, _ := newAuthority(t)
	_, other := newAuthority(t)
	certificate := issue(t, one, Request{CommonName: "admin"})
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: other, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil {
		t.Error("a certificate of one authority is taken by another")
	}
}

func TestSerialNumbersDiffer(t *testing.T) {
	authority, _ := newAuthority(t)
	first := issue(t, authority, Request{CommonName: "a"})
	second := issue(t, authority, Request{CommonName: "b"})
	if first.SerialNumber.Cmp(second.SerialNumber) == 0 || first.SerialNumber.Sign() <= 0 {
		t.Errorf("serial numbers %v and %v", first.SerialNumber, second.SerialNumber)
	}
}

func TestNewSigningKey(t *testing.T) {
	key, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	private, _ := pem.Decode(key.Private)
	public, _ := pem.Decode(key.Public)
	if private == nil || public == nil || private.Type != "EC PRIVATE KEY" || public.Type != "PUBLIC KEY" {
		t.Fatalf("not the PEM blocks that the API server reads:\n%s%s", key.Private, key.Public)
	}
	decoded, err := x509.ParseECPrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.ParsePKIXPublicKey(public.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !decoded.PublicKey.Equal(other.(*ecdsa.PublicKey)) {
		t.Error("the two halves do not belong together")
	}
}
