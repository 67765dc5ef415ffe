package dataplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/dataplane/ir"
)

// secure makes the snapshot's socket speak TLS, with a certificate of its own.
func secure(t testing.TB, snap *ir.Snapshot) *ir.Snapshot {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"a.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := &ir.Certificate{
		Name:  "default/cert",
		Chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:   ir.NewSecret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}
	sock := snap.Sockets[0]
	sock.Protocol = ir.ProtocolHTTPS
	for _, l := range sock.Listeners {
		l.TLS = &ir.TLS{Certificates: []*ir.Certificate{cert}}
	}
	return snap
}

// clientTLS is a client's configuration for the certificate of secure.
func clientTLS(protocols ...string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, ServerName: "a.test", NextProtos: protocols} //nolint:gosec // it is a test's certificate
}

// h2Client returns a client that speaks HTTP/2 to addr, whatever the URL's host,
// on one connection.
func h2Client(t testing.TB, addr string) *http.Client {
	t.Helper()
	tr := &http.Transport{
		TLSClientConfig:   clientTLS("h2"),
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 60 * time.Second}
}

// h2Peer is a client that sends frames by hand.
type h2Peer struct {
	*http2.Framer
	t    testing.TB
	conn net.Conn
	enc  *hpack.Encoder
	head headBuffer
}

type headBuffer []byte

func (b *headBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// dialH2 opens a connection and sends the preface and settings.
func dialH2(t testing.TB, addr string, settings ...http2.Setting) *h2Peer {
	t.Helper()
	c, err := tls.Dial("tcp", addr, clientTLS("h2"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if p := c.ConnectionState().NegotiatedProtocol; p != "h2" {
		t.Fatalf("ALPN chose %q", p)
	}
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	p := &h2Peer{Framer: http2.NewFramer(c, c), t: t, conn: c}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.enc = hpack.NewEncoder(&p.head)
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	p.must(p.WriteSettings(settings...))
	return p
}

func (p *h2Peer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// request sends the head of a request.
func (p *h2Peer) request(stream uint32, end bool, fields ...string) {
	p.t.Helper()
	p.must(p.tryRequest(stream, end, fields...))
}

func (p *h2Peer) tryRequest(stream uint32, end bool, fields ...string) error {
	p.head = p.head[:0]
	all := append([]string{":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/"}, fields...)
	for i := 0; i < len(all); i += 2 {
		name, value := all[i], all[i+1]
		if i < 8 { // a pseudo-header field given again replaces the default
			for j := 8; j < len(all); j += 2 {
				if all[j] == name {
					value = all[j+1]
				}
			}
		} else if name[0] == ':' {
			continue
		}
		if err := p.enc.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
			return err
		}
	}
	return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.head, EndStream: end, EndHeaders: true})
}

// next returns the next frame that is not about settings or windows; settings
// are acknowledged.
func (p *h2Peer) next() http2.Frame {
	p.t.Helper()
	for {
		f, err := p.ReadFrame()
		if err != nil {
			p.t.Fatalf("reading a frame: %v", err)
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.must(p.WriteSettingsAck())
			}
		case *http2.WindowUpdateFrame:
		default:
			return f
		}
	}
}

// wantStatus reads the head of an answer.
func (p *h2Peer) wantStatus(stream uint32, status string) *http2.MetaHeadersFrame {
	p.t.Helper()
	f, ok := p.next().(*http2.MetaHeadersFrame)
	if !ok || f.StreamID != stream || f.PseudoValue("status") != status {
		p.t.Fatalf("got %v, want status %s on stream %d", f, status, stream)
	}
	return f
}

// wantReset reads frames of a stream until it is reset.
func (p *h2Peer) wantReset(stream uint32, code http2.ErrCode) {
	p.t.Helper()
	for {
		switch f := p.next().(type) {
		case *http2.RSTStreamFrame:
			if f.StreamID != stream || f.ErrCode != code {
				p.t.Fatalf("stream %d was reset with %v, want %d with %v", f.StreamID, f.ErrCode, stream, code)
			}
			return
		case *http2.DataFrame, *http2.MetaHeadersFrame:
		default:
			p.t.Fatalf("got %v, want a reset", f)
		}
	}
}

// wantGoAway reads until a GOAWAY.
func (p *h2Peer) wantGoAway(code http2.ErrCode) *http2.GoAwayFrame {
	p.t.Helper()
	for {
		if f, ok := p.next().(*http2.GoAwayFrame); ok {
			if f.ErrCode != code {
				p.t.Fatalf("GOAWAY with %v, want %v", f.ErrCode, code)
			}
			return f
		}
	}
}
