package cases

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// gateway is a running headgate process and the directory that it serves.
type gateway struct {
	dir    string
	status string
	addr   string // the HTTP listener of the Gateway "edge"
	admin  string
	args   []string
	cmd    *exec.Cmd
	log    *logBuffer
	out    *os.File      // gets the log instead, if not nil
	done   chan struct{} // closed when the process has ended
	err    error         // from Wait; read after done
}

// options of a gateway. The zero value is one worker pair with short timeouts.
type options struct {
	args      []string
	listeners []string // YAML flow mappings; none means one HTTP listener
}

// edge starts a gateway with one HTTP listener named http, on g.addr.
func edge(t testing.TB, docs ...string) *gateway {
	t.Helper()
	return start(t, options{}, docs...)
}

// start runs a gateway on a new directory with a GatewayClass, the Gateway
// "edge" and the documents, and waits until it is ready. It ends with the test;
// when the test failed, its log is shown.
func start(t testing.TB, o options, docs ...string) *gateway {
	t.Helper()
	port := freePort(t)
	listeners := o.listeners
	if len(listeners) == 0 {
		listeners = []string{fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port)}
	}
	g := &gateway{
		dir:    t.TempDir(),
		status: t.TempDir(),
		addr:   loopback(port),
		admin:  loopback(freePort(t)),
		log:    &logBuffer{},
		done:   make(chan struct{}),
	}
	g.apply(t, "class.yaml", gatewayClass)
	g.apply(t, "gateway.yaml", gatewayObject("edge", listeners...))
	for i, doc := range docs {
		g.apply(t, fmt.Sprintf("%02d.yaml", i), doc)
	}
	g.args = o.args
	g.run(t)
	g.awaitReady(t)
	return g
}

// run starts the process, which ends with the test.
func (g *gateway) run(t testing.TB) {
	t.Helper()
	args := append([]string{"serve", g.dir,
		"--admin-address", g.admin, "--workers", "2", "--access-log", "off",
		"--drain-period", "1s", "--status-dir", g.status}, g.args...)
	g.cmd = exec.Command(os.Getenv(binaryEnv), args...)
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	if g.out != nil {
		g.cmd.Stdout, g.cmd.Stderr = g.out, g.out
	}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		g.err = g.cmd.Wait()
		close(g.done)
	}()
	t.Cleanup(func() { g.end(t) })
}

func (g *gateway) awaitReady(t testing.TB) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for time.Now().Before(end) {
		select {
		case <-g.done:
			t.Fatalf("the gateway ended at once: %v", g.err)
		default:
		}
		resp, err := http.Get("http://" + g.admin + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the gateway was not ready within 30 s")
}

// end stops the process, if it still runs, and looks at its log.
func (g *gateway) end(t testing.TB) {
	select {
	case <-g.done:
	default:
		g.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-g.done:
			if g.err != nil {
				t.Errorf("the gateway ended with %v after SIGTERM", g.err)
			}
		case <-time.After(20 * time.Second):
			g.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the log
			time.Sleep(500 * time.Millisecond)
			g.cmd.Process.Kill()
			<-g.done
			t.Error("the gateway ignored SIGTERM for 20 s")
		}
	}
	log := g.log.String()
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(log, bad) {
			t.Errorf("the gateway's log has %q", bad)
		}
	}
	if t.Failed() {
		t.Logf("log of the gateway:\n%s", log)
	}
}

// apply writes a file of the directory in one step.
func (g *gateway) apply(t testing.TB, name, content string) {
	t.Helper()
	writeFile(t, filepath.Join(g.dir, name), content)
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmp.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if err := tmp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a file of the directory.
func (g *gateway) remove(t testing.TB, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(g.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// rss returns the process's resident memory in bytes.
func (g *gateway) rss(t testing.TB) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// awaitStatus waits until a GET of the target has the status.
func (g *gateway) awaitStatus(t testing.TB, host, target string, status int) {
	t.Helper()
	eventually(t, patience, func() error {
		r := exchange(t, g.addr, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		if r.status != status {
			return fmt.Errorf("%s%s: status %d, want %d", host, target, r.status, status)
		}
		return nil
	})
}

// check runs `headgate check` on the directory.
func (g *gateway) check(t testing.TB) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Getenv(binaryEnv), "check", g.dir).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// logBuffer keeps a process's output.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 4<<20 {
		return len(p), nil
	}
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// portCursor is where the search for a free port goes on.
var portCursor atomic.Uint32

// freePort returns a port that nobody listens on. It is below the range that
// the kernel gives to outgoing connections, so that none takes it meanwhile.
func freePort(t testing.TB) int {
	t.Helper()
	const low, span = 20_000, 12_000
	for range span {
		port := low + (os.Getpid()*97+int(portCursor.Add(1)))%span
		ln, err := net.Listen("tcp4", loopback(port))
		if err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
