package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/headgate/headgate/test/cluster/pki"
)

// administrators is the group that may do everything.
const administrators = "system:masters"

// clients are the identities that get a certificate and a kubeconfig. The API
// server knows what each may do by its name and group.
var clients = []struct {
	name  string // of the files
	user  string
	group string
}{
	{"admin", "headgate-test-admin", administrators},
	{"kube-controller-manager", "system:kube-controller-manager", ""},
	{"kube-scheduler", "system:kube-scheduler", ""},
	{"kube-proxy", "system:kube-proxy", ""},
	{"kubelet", "system:node:" + nodeName, "system:nodes"},
	{"kubelet-client", "kube-apiserver-kubelet-client", administrators}, // the API server's, for kubelets
}

// server returns the API server's URL, as its clients see it: those on the
// machine and those on the node.
func server(mode Mode) string {
	return "https://" + serverAddress(mode).String()
}

func serverAddress(mode Mode) netip.AddrPort {
	address := netip.MustParseAddr("127.0.0.1")
	if mode == Node {
		address = netip.MustParseAddr(nodeAddress)
	}
	return netip.AddrPortFrom(address, apiServerPort)
}

// writeCredentials makes an authority and all certificates, keys and
// kubeconfigs of a cluster.
func writeCredentials(l layout, mode Mode, now time.Time) error {
	if err := os.MkdirAll(l.run("certificates"), 0o700); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	authority, err := pki.NewAuthority("headgate-test-ca", now)
	if err != nil {
		return err
	}
	if err := writePair(l, "ca", authority.Pair()); err != nil {
		return err
	}
	loopback := netip.MustParseAddr("127.0.0.1")
	for name, request := range map[string]pki.Request{
		"kube-apiserver": {
			CommonName: "kube-apiserver",
			DNSNames:   []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
			Addresses:  []netip.Addr{loopback, netip.MustParseAddr(serviceAddress), netip.MustParseAddr(nodeAddress)},
			Server:     true,
		},
		"kubelet-server": {
			CommonName: nodeName,
			DNSNames:   []string{nodeName},
			Addresses:  []netip.Addr{loopback, netip.MustParseAddr(nodeAddress)},
			Server:     true,
		},
	} {
		pair, err := authority.Issue(request, now)
		if err != nil {
			return err
		}
		if err := writePair(l, name, pair); err != nil {
			return err
		}
	}
	for _, client := range clients {
		request := pki.Request{CommonName: client.user}
		if client.group != "" {
			request.Organization = []string{client.group}
		}
		pair, err := authority.Issue(request, now)
		if err != nil {
			return err
		}
		if err := writePair(l, client.name, pair); err != nil {
			return err
		}
		content, err := render("kubeconfig.yaml.tmpl", kubeconfig{
			Server: server(mode), User: client.user,
			Authority: authority.Pair().Certificate, Certificate: pair.Certificate, Key: pair.Key,
		})
		if err != nil {
			return err
		}
		paths := []string{l.kubeconfigOf(client.name)}
		if client.name == "admin" {
			paths = append(paths, l.kubeconfig())
		}
		for _, path := range paths {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return fmt.Errorf("write a kubeconfig: %w", err)
			}
		}
	}
	tokens, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	return writeFiles(map[string][]byte{l.key("tokens"): tokens.Private, l.certificate("tokens"): tokens.Public})
}

func writePair(l layout, name string, pair pki.Pair) error {
	return writeFiles(map[string][]byte{l.certificate(name): pair.Certificate, l.key(name): pair.Key})
}

func writeFiles(files map[string][]byte) error {
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write a certificate or key: %w", err)
		}
	}
	return nil
}
