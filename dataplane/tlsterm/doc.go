// Package tlsterm ends TLS 1.2 and 1.3 without ever blocking a loop. It picks
// the certificate by server name, runs handshakes on goroutines of their own
// under a bound, and turns ciphertext into plaintext and back on the loop that
// owns the connection. The records and the cryptography are crypto/tls's; this
// package is the in-memory connection that crypto/tls sees.
//
// A [Terminator] is shared by a whole data plane: session tickets and the bound
// on handshakes. A [Socket] has the certificates of one listening socket. A
// [Session] is one connection, and sees it through the [Carrier] that the
// connection implements. The package imports dataplane/ir and the standard
// library only; it never reads a clock and never sleeps.
package tlsterm
