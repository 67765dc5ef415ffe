package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// holdPort is the variable that makes this test program a stranger that holds a
// port of the node, instead of running tests.
const holdPort = "HEADGATE_E2E_HOLD"

func TestMain(m *testing.M) {
	if port := os.Getenv(holdPort); port != "" {
		if _, err := net.Listen("tcp", ":"+port); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("listening")
		select {}
	}
	os.Exit(m.Run())
}

// process returns the id, on this machine, of the pod's gateway.
func (w *world) process(t *testing.T, pod string) int {
	t.Helper()
	uid := w.field(t, "pod -n "+namespace+" "+pod, "{.metadata.uid}")
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil || !strings.Contains(string(groups), uid) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(command), "/headgate\x00controller\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatalf("pod %s has no process", pod)
	return 0
}

// pod returns the name of the only pod of the gateway that is not ending.
func (w *world) pod(t *testing.T) string {
	t.Helper()
	out := w.run(t, "kubectl get pods -n "+namespace+` -l app.kubernetes.io/name=headgate -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}'`)
	names := strings.Fields(out)
	if len(names) != 1 {
		t.Fatalf("want one pod, got %q", names)
	}
	return names[0]
}

// resident returns the resident memory of a process, in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatalf("process %d has no resident memory", pid)
	return 0
}

// hold starts a stranger on the node that listens on a port. Its result ends it.
func (w *world) hold(t *testing.T, port int) (release func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), holdPort+"="+strconv.Itoa(port))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(c); err != nil {
		t.Fatal(err)
	}
	end := func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	t.Cleanup(end)
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatalf("the stranger does not listen: %v", err)
	}
	return end
}
