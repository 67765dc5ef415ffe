package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// SigningKey is a key without a certificate, both halves PEM. The API server
// signs ServiceAccount tokens with one.
type SigningKey struct {
	Private []byte
	Public  []byte
}

// NewSigningKey returns a new ECDSA P-256 key.
func NewSigningKey() (SigningKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return SigningKey{}, fmt.Errorf("make a signing key: %w", err)
	}
	private, err := encodePrivate(key)
	if err != nil {
		return SigningKey{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return SigningKey{}, fmt.Errorf("encode a public key: %w", err)
	}
	return SigningKey{Private: private, Public: encodeBlock("PUBLIC KEY", public)}, nil
}

func encodePrivate(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return encodeBlock("EC PRIVATE KEY", der), nil
}

func encodeBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
