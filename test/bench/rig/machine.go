//go:build linux

package rig

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Installed returns where the programs are, and why others are missing.
func Installed(names ...string) (tools, missing map[string]string) {
	tools, missing = make(map[string]string), make(map[string]string)
	for _, name := range names {
		for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
			if path, err := exec.LookPath(candidate); err == nil {
				tools[name] = path
				break
			}
		}
		if tools[name] == "" {
			missing[name] = "not installed"
		}
	}
	return tools, missing
}

// Build builds a package, as seen from dir, into the program path.
func Build(dir, pkg, path string) error {
	build := exec.Command("go", "build", "-o", path, pkg)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("does not build: %v: %s", err, out)
	}
	return nil
}

// ModuleRoot returns the directory of a module, as seen from the working
// directory; "" is the main module.
func ModuleRoot(module string) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}"}
	if module != "" {
		args = append(args, module)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// FreePort returns a port below the range of outgoing connections.
func FreePort() (int, error) {
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(12_000))
		if err != nil {
			return 0, err
		}
		port := 20_000 + int(n.Int64())
		ln, err := net.Listen("tcp4", Loopback(port))
		if err == nil {
			return port, ln.Close()
		}
	}
	return 0, fmt.Errorf("no free port")
}

// Loopback returns an address of this machine only.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Kernel returns the running kernel's release.
func Kernel() string {
	var uts unix.Utsname
	unix.Uname(&uts) // can only fail with a bad address
	return unix.ByteSliceToString(uts.Release[:])
}

// LoadAverage is the machine's, of the last minute; 0 when it can't be read.
func LoadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// FirstLine runs a program and returns the first line that it prints.
func FirstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// MedianOf returns the median of a value; 0 of none.
func MedianOf[S any](some []S, value func(S) float64) float64 {
	if len(some) == 0 {
		return 0
	}
	var vs []float64
	for _, s := range some {
		vs = append(vs, value(s))
	}
	slices.Sort(vs)
	if n := len(vs); n%2 == 0 {
		return (vs[n/2-1] + vs[n/2]) / 2
	}
	return vs[len(vs)/2]
}

// Body512 is a JSON document of 512 bytes.
func Body512() string {
	head, tail := `{"id":1,"name":"headgate","payload":"`, `"}`
	return head + strings.Repeat("abcdefgh", 64)[:512-len(head)-len(tail)] + tail
}

// NginxHead is the part that all configurations of nginx share, with the http
// block left open. The name makes its files in dir its own.
func NginxHead(dir, name string, workers int) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // workers of another user could not read the scratch directory
	}
	tmp := filepath.Join(dir, name+"-tmp")
	return fmt.Sprintf(`%sdaemon off;
worker_processes %d;
worker_rlimit_nofile 20000;
pid %s.pid;
error_log stderr warn;
events { worker_connections 19000; }
http {
  access_log off;
  client_body_temp_path %s-body; proxy_temp_path %s-proxy; fastcgi_temp_path %s-f; uwsgi_temp_path %s-u; scgi_temp_path %s-s;
`, user, workers, filepath.Join(dir, name), tmp, tmp, tmp, tmp, tmp)
}

// LongKeepAlive keeps nginx's client connections for as long as a measurement
// takes.
const LongKeepAlive = `
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
`
