package tlsterm

import (
	"errors"
	"fmt"
)

var (
	// ErrNotTLS means that the client's first byte does not start a TLS
	// handshake: it is likely to speak plain HTTP to the TLS port. Nothing was
	// sent; the caller can answer in clear.
	ErrNotTLS = errors.New("not a tls handshake")
	// ErrUnknownName means that no listener of the socket serves the client's
	// server name, or that the client sent none and no listener serves any host.
	ErrUnknownName = errors.New("no listener for the server name")
	// ErrNoCertificate means that the listener of the server name has no usable
	// certificate.
	ErrNoCertificate = errors.New("listener has no usable certificate")
	// ErrTooMuchInput means that the peer sent more than a session may hold: more
	// than a handshake can need, or ciphertext that the caller did not read.
	ErrTooMuchInput = errors.New("too much unread tls input")
	// ErrClosed means that the session is closed or its handshake failed.
	ErrClosed = errors.New("tls session is closed")
	// ErrHandshaking means that the handshake is not over yet.
	ErrHandshaking = errors.New("tls handshake is not over")
)

// CertificateError says why a certificate of a listener can't be used.
// [Socket.Update] returns them joined.
type CertificateError struct {
	Listener    string // ir.Listener.Name
	Certificate string // ir.Certificate.Name
	Err         error
}

// Error names the listener and the certificate.
func (e *CertificateError) Error() string {
	return fmt.Sprintf("listener %s: certificate %s: %v", e.Listener, e.Certificate, e.Err)
}

// Unwrap returns the reason.
func (e *CertificateError) Unwrap() error { return e.Err }
