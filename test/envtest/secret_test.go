package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// pair returns a certificate for a hostname, and its key.
func pair(t *testing.T, hostname string) (chain, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: hostname}, DNSNames: []string{hostname},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	der2, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der2})
}

// secret makes a Secret of type TLS.
func (w *world) secret(name string, chain, key []byte) *corev1.Secret {
	w.Helper()
	if chain == nil {
		chain, key = []byte{}, []byte{}
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	}
	w.create(s)
	return s
}

// https makes a Gateway's listener one with a certificate.
func (w *world) https(secret string) func(*gatewayv1.Gateway) {
	return func(gw *gatewayv1.Gateway) {
		gw.Spec.Listeners[0] = gatewayv1.Listener{
			Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: gatewayv1.ObjectName(secret)}}},
		}
	}
}

// fieldName is the object's name in a query's field selector.
func fieldName(query string) string {
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(q.Get("fieldSelector"), "metadata.name=")
}

// unlessContains returns why a text lacks a part: text, part, text, part ...
func unlessContains(pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(pairs[i], pairs[i+1]) {
			return pairs[i] + " lacks " + pairs[i+1]
		}
	}
	return ""
}
