package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/test/cluster/cluster"
)

// run runs the command line and returns its exit code and what it wrote.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints strings.Builder
	a := app{stdin: strings.NewReader(""), stdout: &out, stderr: &complaints}
	code = a.run(t.Context(), args)
	return code, out.String(), complaints.String()
}

func TestRun(t *testing.T) {
	empty := t.TempDir()
	for _, tc := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", exitUsage, "usage: cluster COMMAND"},
		{"restart", exitUsage, `there is no command "restart"`},
		{"build kubelet", exitUsage, "one of all, envtest, kubectl"},
		{"build all kubectl", exitUsage, "one part at a time"},
		{"up", exitUsage, "say which: cp or node"},
		{"up both", exitUsage, `"both" is neither cp nor node`},
		{"up cp --fast", exitUsage, "flag provided but not defined: -fast"},
		{"up node --addresses x", exitUsage, "addresses"},
		{"down now", exitUsage, "no arguments"},
		{"status now", exitUsage, "no arguments"},
		{"kubeconfig now", exitUsage, "no arguments"},
		{"assets now", exitUsage, "no arguments"},
		{"enter", exitUsage, "say what to run"},
		{"image a:1 out.tar", exitUsage, "are needed"},
		{"load", exitUsage, "say which archive"},
		{"addresses", exitUsage, "add, del or list"},
		{"addresses add", exitUsage, "add and del need addresses"},
		{"addresses add ten", exitUsage, "ten"},
		{"addresses list 10.90.0.9", exitUsage, "list takes none"},
		{"apiserver restart", exitUsage, "stop or start"},
		{"crds", exitUsage, "say which CRDs"},
		{"status --dir " + empty, exitNotUp, "no test cluster is up in " + empty},
		{"kubeconfig --dir " + empty, exitNotUp, "no test cluster is up"},
		{"enter --dir " + empty + " ls --color", exitNotUp, "no test cluster is up"},
		{"load x.tar --dir " + empty, exitNotUp, "no test cluster is up"},
		{"addresses add 10.90.0.9 --dir " + empty, exitNotUp, "no test cluster is up"},
		{"apiserver stop --dir " + empty, exitNotUp, "no test cluster is up"},
		{"crds x --dir " + empty, exitNotUp, "no test cluster is up"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			code, stdout, stderr := run(t, strings.Fields(tc.args)...)
			if code != tc.code || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d; stderr, want %q:\n%s", code, tc.code, tc.stderr, stderr)
			}
			if stdout != "" {
				t.Errorf("a script would have read %q", stdout)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := run(t, "help")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, c := range new(app).commands() {
		if !strings.Contains(stdout, "\n  "+c.name) || !strings.Contains(stdout, c.summary) {
			t.Errorf("help says nothing of %s", c.name)
		}
	}
	code, stdout, _ = run(t, "down", "--help")
	if code != 0 || !strings.Contains(stdout, "usage: cluster down [--dir D]") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		code int
	}{
		{"done", nil, 0},
		{"failed", errors.New("no space left"), exitFailed},
		{"usage", usagef("what"), exitUsage},
		{"held", fmt.Errorf("up: %w", &cluster.HeldError{}), exitHeld},
		{"packages", &cluster.MissingError{Programs: []string{"runc"}}, exitMissing},
		{"root", cluster.ErrNotRoot, exitMissing},
		{"not up", fmt.Errorf("%w in /x", cluster.ErrNotUp), exitNotUp},
		{"another's exit code", exitError{42}, 42},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stderr strings.Builder
			a := app{stdout: &strings.Builder{}, stderr: &stderr}
			if code := a.report(command{name: "up"}, tc.err); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if said := strings.HasPrefix(stderr.String(), "cluster up: "); said != (tc.code != 0 && tc.code != 42) {
				t.Errorf("stderr %q", stderr.String())
			}
		})
	}
}

func TestImage(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "echo"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "echo.tar")
	if code, _, stderr := run(t, "image", "local.test/echo:1,local.test/echo:2", out, root, "/echo", "--dir", "x"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"RepoTags":["local.test/echo:1","local.test/echo:2"]`, `"Entrypoint":["/echo","--dir","x"]`} {
		if !strings.Contains(string(content), part) {
			t.Errorf("the archive lacks %s", part)
		}
	}
}

func TestParse(t *testing.T) {
	var fast bool
	rest, dir, err := parse([]string{"node", "--dir", "d", "more", "--fast"}, func(flags *flag.FlagSet) {
		flags.BoolVar(&fast, "fast", false, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"node", "more"}, rest); diff != "" || dir != "d" || !fast {
		t.Errorf("directory %q, fast %v, arguments (-want +got):\n%s", dir, fast, diff)
	}
	rest, dir, err = parseLeading([]string{"--dir", "d", "ls", "--dir", "e"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ls", "--dir", "e"}, rest); diff != "" || dir != "d" {
		t.Errorf("directory %q, command (-want +got):\n%s", dir, diff)
	}
}

func TestParsePrefix(t *testing.T) {
	for text, want := range map[string]string{"10.90.0.64/26": "10.90.0.64/26", "10.90.0.9": "10.90.0.9/32"} {
		if got, err := parsePrefix(text); err != nil || got != netip.MustParsePrefix(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := parsePrefix("10.90.0"); err == nil {
		t.Error("10.90.0 is taken")
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/tmp/state-1/kubeconfig": "/tmp/state-1/kubeconfig",
		"/tmp/my state":           "'/tmp/my state'",
		"it's":                    `'it'\''s'`,
		"":                        "''",
	} {
		if got := quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
