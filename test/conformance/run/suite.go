package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// result counts the suite's tests.
type result struct {
	passed, failed, skipped int
	failures                []string
}

func (r *result) add(o result) {
	r.passed += o.passed
	r.failed += o.failed
	r.skipped += o.skipped
	r.failures = append(r.failures, o.failures...)
}

// verdict is the line that ends a test. Only those directly below the suite's
// own test count; for what is below them, the failures are listed, too.
var verdict = regexp.MustCompile(`^( *)--- (PASS|FAIL|SKIP): TestConformance/(\S+) \(`)

// suite runs the suite once.
func (p paths) suite(ctx context.Context, c *cluster.Cluster, program string, o options) (result, error) {
	args := []string{
		"-test.run", "^TestConformance$", "-test.v", "-test.timeout", o.timeout.String(),
		"--gateway-class", class, "--conformance-profiles", o.profiles,
		"--usable-address", usable, "--unusable-address", unusable,
	}
	report := filepath.Join(filepath.Dir(program), "report.yaml")
	if o.runTest == "" && o.skip == "" {
		args = append(args, "--report-output", report, "--organization", "headgate", "--project", "headgate",
			"--url", "https://github.com/headgate/headgate", "--version", o.version,
			"--contact", "https://github.com/headgate/headgate/issues")
	}
	if o.runTest != "" {
		args = append(args, "--run-test", o.runTest)
	}
	if o.skip != "" {
		args = append(args, "--skip-tests", o.skip)
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = c.Dir()
	// The suite has a way of its own to the cluster, and no other.
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HTTPS_PROXY=", "https_proxy=", "HTTP_PROXY=", "http_proxy=")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	out, err := command.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	command.Stderr = command.Stdout
	log, err := os.Create(filepath.Join(c.Logs(), "conformance.log"))
	if err != nil {
		return result{}, err
	}
	defer log.Close()
	if err := command.Start(); err != nil {
		return result{}, err
	}
	r, err := watch(io.TeeReader(out, log), o.verbose)
	werr := command.Wait()
	if exit := new(exec.ExitError); errors.As(werr, &exit) && exit.Exited() && r.failed > 0 {
		werr = nil // the tests that failed are listed
	}
	if err = errors.Join(err, werr, ctx.Err()); err != nil {
		return r, fmt.Errorf("%w: see %s", err, log.Name())
	}
	if o.runTest == "" && o.skip == "" && r.failed == 0 {
		err = p.publish(report)
	}
	return r, err
}

// watch counts the verdicts in the suite's output.
func watch(in io.Reader, all bool) (result, error) {
	var r result
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := verdict.FindStringSubmatch(lines.Text())
		if all || m != nil && m[2] == "FAIL" {
			fmt.Println(lines.Text())
		}
		if m == nil || strings.Contains(m[3], "/") {
			continue
		}
		switch m[2] {
		case "PASS":
			r.passed++
		case "SKIP":
			r.skipped++
		case "FAIL":
			r.failed++
			r.failures = append(r.failures, m[3])
		}
	}
	return r, lines.Err()
}
