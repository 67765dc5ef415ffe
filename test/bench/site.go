//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate/test/bench/rig"
)

// hostName is what all requests ask for.
const hostName = "bench.example"

// site is what all proxies share: the addresses, the backends behind them, the
// certificate, and the built programs.
type site struct {
	dir   string // scratch, removed at the end
	tools map[string]string

	http, https, admin int    // where the proxy under test listens
	upstream           int    // the fast backend: nginx
	slow               int    // the slow one: `load serve`
	cert, key, pem     string // files; pem is both

	backends []*rig.Process
	loadCPUs []int
}

func newSite(tools map[string]string) (*site, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	s := &site{dir: dir, tools: tools}
	for _, port := range []*int{&s.http, &s.https, &s.admin, &s.upstream, &s.slow} {
		if *port, err = rig.FreePort(); err != nil {
			return nil, err
		}
	}
	if err := s.writeCertificate(); err != nil {
		return nil, err
	}
	return s, nil
}

// close ends the backends and removes the scratch directory.
func (s *site) close() {
	s.stopBackends()
	os.RemoveAll(s.dir)
}

func (s *site) stopBackends() {
	for _, b := range s.backends {
		b.Stop()
	}
	s.backends = nil
}

// loader drives the proxy from the CPUs of the load.
func (s *site) loader() *rig.Loader {
	return &rig.Loader{Tools: s.tools, Dir: s.dir, Host: hostName, CPUs: s.loadCPUs}
}

// startBackends starts both backends on the CPUs of the load.
func (s *site) startBackends(workers int, cpus []int) error {
	s.stopBackends()
	s.loadCPUs = cpus
	root := filepath.Join(s.dir, "www")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for name, size := range map[string]int{"64k": 64 << 10, "1m": 1 << 20} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(strings.Repeat("x", size)), 0o644); err != nil {
			return err
		}
	}
	config := rig.NginxHead(s.dir, "upstream", workers) + rig.LongKeepAlive + fmt.Sprintf(`
  sendfile on; tcp_nopush off; open_file_cache max=10;
  server {
    listen 127.0.0.1:%d backlog=4096;
    root %s;
    default_type application/json;
    location = / { return 200 '%s'; }
  }
}
`, s.upstream, root, rig.Body512())
	path := filepath.Join(s.dir, "upstream.conf")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return err
	}
	up, err := rig.Launch(cpus, s.tools["nginx"], "-c", path, "-p", s.dir)
	if err != nil {
		return err
	}
	s.backends = append(s.backends, up)
	slow, err := rig.Launch(cpus, s.tools["load"], "serve", "-listen", rig.Loopback(s.slow))
	if err != nil {
		return err
	}
	s.backends = append(s.backends, slow)
	if err := up.AwaitPort(rig.Loopback(s.upstream)); err != nil {
		return err
	}
	return slow.AwaitPort(rig.Loopback(s.slow))
}

// writeCertificate makes a P-256 certificate for the host, valid for a day.
func (s *site) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: hostName},
		DNSNames:     []string{hostName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	s.cert, s.key, s.pem = filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem"), filepath.Join(s.dir, "both.pem")
	for path, data := range map[string][]byte{s.cert: certPEM, s.key: keyPEM, s.pem: append(certPEM, keyPEM...)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
