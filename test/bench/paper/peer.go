//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/headgate/headgate/test/bench/rig"
)

// peer is a proxy under test.
type peer struct {
	name  string
	title string
	tools []string // that it needs
	start func(l *lab, s setup, cpus []int) (*rig.Process, error)
	// version says what was measured.
	version func(l *lab) string
}

// The names of the peers. The baseline is the paper's: nginx with its defaults,
// which before 1.29.7 are HTTP/1.0 and a new upstream connection per request.
const (
	headgate = "headgate"
	nginx    = "nginx"
	baseline = "nginx-default"
	apache   = "apache"
	prefork  = "apache-prefork"
)

var peers = []peer{
	{headgate, "Headgate", []string{"headgate"}, startHeadgate, func(l *lab) string { return rig.FirstLine(l.tools["headgate"], "version") }},
	{nginx, "nginx, tuned", []string{"nginx"}, startNginx(true), nginxVersion},
	{baseline, "nginx, defaults", []string{"nginx"}, startNginx(false), nginxVersion},
	{apache, "Apache httpd, a thread each", []string{"apache2"}, startApache("worker"), apacheVersion},
	{prefork, "Apache httpd, a process each", []string{"apache2"}, startApache("prefork"), apacheVersion},
}

func nginxVersion(l *lab) string  { return rig.FirstLine(l.tools["nginx"], "-v") }
func apacheVersion(l *lab) string { return rig.FirstLine(l.tools["apache2"], "-v") }

// title returns what a peer is called in tables.
func title(name string) string {
	for _, p := range peers {
		if p.name == name {
			return p.title
		}
	}
	return name
}

// startHeadgate runs the gateway on a directory of objects, with its defaults
// but for the access log, which no peer writes, and what the setup asks for.
func startHeadgate(l *lab, s setup, cpus []int) (*rig.Process, error) {
	dir := filepath.Join(l.dir, "headgate")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(headgateObjects(s, l.ports)), 0o644); err != nil {
		return nil, err
	}
	args := []string{"serve", dir, "--workers", strconv.Itoa(s.workers), "--admin-address", rig.Loopback(l.ports.admin),
		"--access-log", "off", "--idle-timeout", "300s", "--drain-period", "1s", "--log-level", "warn"}
	return rig.Launch(cpus, l.tools["headgate"], append(args, s.flags...)...)
}

func startNginx(tuned bool) func(*lab, setup, []int) (*rig.Process, error) {
	return func(l *lab, s setup, cpus []int) (*rig.Process, error) {
		path := filepath.Join(l.dir, "nginx.conf")
		if err := os.WriteFile(path, []byte(nginxConfig(l.dir, s, l.ports, tuned)), 0o644); err != nil {
			return nil, err
		}
		return rig.Launch(cpus, l.tools["nginx"], "-c", path, "-p", l.dir)
	}
}

func startApache(mpm string) func(*lab, setup, []int) (*rig.Process, error) {
	return func(l *lab, s setup, cpus []int) (*rig.Process, error) {
		modules, err := apacheModules(mpm)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(l.dir, "apache.conf")
		config := apacheConfig(l.dir, modules, mpm, s, l.ports, os.Geteuid() == 0)
		if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
			return nil, err
		}
		return rig.Launch(cpus, l.tools["apache2"], "-f", path, "-DFOREGROUND")
	}
}

// apacheModules finds the directory of Apache's modules.
func apacheModules(mpm string) (string, error) {
	for _, dir := range []string{"/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/local/apache2/modules"} {
		if _, err := os.Stat(filepath.Join(dir, "mod_mpm_"+mpm+".so")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no mod_mpm_%s.so: install Apache httpd with its modules", mpm)
}
