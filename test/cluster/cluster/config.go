package cluster

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// The templates of the configuration files; audit-policy.yaml is used as it is.
//
//go:embed config
var configFiles embed.FS

// nodeConfig is what the node's configuration files are rendered from.
type nodeConfig struct {
	Authority          string // file of the authority's certificate
	CNIAddresses       string // directory of the addresses that pods have
	CNIConfig          string // directory of the CNI configuration
	CgroupRoot         string // cgroup of all pods
	ClusterCIDR        string
	ContainerdRoot     string
	DNSAddress         string
	KubeletCertificate string
	KubeletKey         string
	PauseImage         string
	PodCIDR            string
	Proxy              Proxy
	ProxyKubeconfig    string
	VolumePlugins      string
}

func newNodeConfig(l layout, proxy Proxy, pauseImage string) nodeConfig {
	return nodeConfig{
		Authority:          l.certificate("ca"),
		CNIAddresses:       l.run("ipam"),
		CNIConfig:          l.run("cni"),
		CgroupRoot:         "/" + cgroupName,
		ClusterCIDR:        clusterCIDR,
		ContainerdRoot:     l.run("containerd"),
		DNSAddress:         dnsAddress,
		KubeletCertificate: l.certificate("kubelet-server"),
		KubeletKey:         l.key("kubelet-server"),
		PauseImage:         pauseImage,
		PodCIDR:            podCIDR,
		Proxy:              proxy,
		ProxyKubeconfig:    l.kubeconfigOf("kube-proxy"),
		VolumePlugins:      l.run("kubelet", "volume-plugins"),
	}
}

// write renders the node's configuration files into the state directory.
func (c nodeConfig) write(l layout) error {
	if err := os.MkdirAll(c.CNIConfig, 0o700); err != nil {
		return fmt.Errorf("write the node's configuration: %w", err)
	}
	for _, file := range []struct{ template, path string }{
		{"containerd.toml.tmpl", l.run("containerd.toml")},
		{"cni.conflist.tmpl", filepath.Join(c.CNIConfig, "10-bridge.conflist")},
		{"kubelet.yaml.tmpl", l.run("kubelet.yaml")},
		{"kube-proxy.yaml.tmpl", l.run("kube-proxy.yaml")},
	} {
		content, err := render(file.template, c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file.path, content, 0o600); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
	}
	return nil
}

// kubeconfig is what a kubeconfig file is rendered from.
type kubeconfig struct {
	Server      string
	User        string
	Authority   []byte // PEM, as the two below
	Certificate []byte
	Key         []byte
}

// render fills in a template of the directory config.
func render(name string, data any) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"quote":  quote,
		"base64": base64.StdEncoding.EncodeToString,
	}).ParseFS(configFiles, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("read the template %s: %w", name, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return []byte(out.String()), nil
}

// quote returns a string as JSON has it, which YAML and TOML read as well.
func quote(v any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
