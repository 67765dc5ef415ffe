package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		in   []string
		sum  string
		good bool
		out  string
	}{
		"passes and skips": {
			[]string{
				`{"Action":"start","Package":"a"}`,
				`{"Action":"run","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Test":"TestX","Output":"noise\n"}`,
				`{"Action":"pass","Package":"a","Test":"TestX/sub","Elapsed":0.1}`,
				`{"Action":"pass","Package":"a","Test":"TestX","Elapsed":0.1}`,
				`{"Action":"output","Package":"a","Test":"TestY","Output":"no root\n"}`,
				`{"Action":"skip","Package":"a","Test":"TestY"}`,
				`{"Action":"pass","Package":"a","Elapsed":1.25}`,
			},
			"2 passed, 0 failed, 1 skipped", true,
			"SKIP  a TestY\nno root\nok    a  3 tests, 1.2 s\n",
		},
		"a failure shows its output only": {
			[]string{
				`{"Action":"output","Package":"a","Test":"TestX","Output":"why\n"}`,
				`{"Action":"output","Package":"a","Test":"TestY","Output":"noise\n"}`,
				`{"Action":"fail","Package":"a","Test":"TestX"}`,
				`{"Action":"pass","Package":"a","Test":"TestY"}`,
				`{"Action":"fail","Package":"a"}`,
			},
			"1 passed, 1 failed", false,
			"FAIL  a TestX\nwhy\nFAIL  a\n",
		},
		"a crash": {
			[]string{
				`{"Action":"pass","Package":"a","Test":"TestX"}`,
				`{"Action":"output","Package":"a","Test":"TestY","Output":"panic: x\n"}`,
				`{"Action":"fail","Package":"a"}`,
			},
			"1 passed, 1 failed", false,
			"panic: x\nFAIL  a\n",
		},
		"a broken build": {
			[]string{
				`{"Action":"build-output","ImportPath":"a","Output":"a.go:1: syntax error\n"}`,
				`{"Action":"build-fail","ImportPath":"a"}`,
				`{"Action":"output","Package":"a","Output":"FAIL\ta [build failed]\n"}`,
				`{"Action":"fail","Package":"a","FailedBuild":"a"}`,
				`{"Action":"pass","Package":"b","Test":"TestX"}`,
				`{"Action":"pass","Package":"b"}`,
			},
			"1 passed, 1 failed", false,
			"a.go:1: syntax error\nFAIL\ta [build failed]\nFAIL  a\nok    b  1 tests, 0.0 s\n",
		},
		"cut off": {
			[]string{`{"Action":"pass","Package":"a","Test":"TestX"}`},
			"1 passed, 1 failed", false, "FAIL  a: no result\n",
		},
		"no tests":       {[]string{`{"Action":"skip","Package":"a"}`}, "0 passed, 0 failed", false, ""},
		"not test2json":  {[]string{`go: no such module`, `{}`}, "0 passed, 0 failed", false, "go: no such module\n{}\n"},
		"nothing at all": {nil, "0 passed, 0 failed", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			sum, err := report(strings.NewReader(strings.Join(c.in, "\n")), &out)
			if err != nil {
				t.Fatal(err)
			}
			if sum.String() != c.sum || sum.good() != c.good {
				t.Errorf("%v, good %v; want %v, %v", sum, sum.good(), c.sum, c.good)
			}
			if out.String() != c.out {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), c.out)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	const most = headLines + tailLines
	lines := make([]string, most)
	for i := range lines {
		lines[i] = fmt.Sprintln("line", i)
	}
	if got := shorten(lines); got != strings.Join(lines, "") {
		t.Errorf("%d lines became %q", most, got)
	}
	lines = append(lines, "one\n", "two\n")
	got := shorten(lines)
	if n := strings.Count(got, "\n"); n != most+1 {
		t.Errorf("%d lines, want %d", n, most+1)
	}
	if !strings.HasPrefix(got, "line 0\n") || !strings.Contains(got, "\n... 2 lines ...\n") || !strings.HasSuffix(got, "one\ntwo\n") {
		t.Errorf("shortened to\n%s", got)
	}
}

// The real thing: a module with one good, one bad and one broken package.
func TestReportOfGoTest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":               "module x\n\ngo 1.26\n",
		"good/a_test.go":       "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Run(\"b\", func(*testing.T) {}) }\n",
		"bad/b_test.go":        "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Error(\"this is why\") }\n",
		"crash/c_test.go":      "package c\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) { panic(\"boom\") }\n",
		"broken/broken.go":     "package broken\n\nvar x int = \"\"\n",
		"broken/d_test.go":     "package broken\n\nimport \"testing\"\n\nfunc TestD(t *testing.T) {}\n",
		"without/without.go":   "package without\n",
		"skipped/skip_test.go": "package skipped\n\nimport \"testing\"\n\nfunc TestE(t *testing.T) { t.Skip(\"not here\") }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
	cmd.Dir = dir
	stream, err := cmd.Output()
	if err == nil {
		t.Fatal("go test was content")
	}
	var out bytes.Buffer
	sum, err := report(bytes.NewReader(stream), &out)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sum.String(), "2 passed, 3 failed, 1 skipped"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, want := range []string{"x/bad TestB", "x/crash TestC", "x/broken"} {
		if !strings.Contains(sum.list(), "\n  "+want+"\n") {
			t.Errorf("%q is not among the failures:\n%s", want, sum.list())
		}
	}
	for _, want := range []string{"this is why", "boom", "cannot use \"\"", "not here", "ok    x/good  2 tests"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
