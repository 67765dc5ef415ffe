package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of test2json, or of the build's.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64
	Output     string
}

// summary counts tests; a package that failed without a failed test counts as
// one, so that a broken build or a crash is never "0 failed".
type summary struct {
	passed, failed, skipped int
	failures                []string // packages and tests, in the order of their end
}

// What is printed of the output of one failed test: its first and last lines.
const (
	headLines = 30
	tailLines = 70
)

func (s summary) good() bool { return s.failed == 0 && s.passed > 0 }

// String returns the closing line.
func (s summary) String() string {
	line := fmt.Sprintf("%d passed, %d failed", s.passed, s.failed)
	if s.skipped > 0 {
		line += fmt.Sprintf(", %d skipped", s.skipped)
	}
	return line
}

// list returns the failures, a line each.
func (s summary) list() string {
	if len(s.failures) == 0 {
		return ""
	}
	return "failed:\n  " + strings.Join(s.failures, "\n  ") + "\n"
}

// progress is what is known of a package under way.
type progress struct {
	output map[string][]string // by test; "" is the package's own
	tests  int
	failed int
}

// report prints what in tells to out and returns the counts.
func report(in io.Reader, out io.Writer) (summary, error) {
	var sum summary
	running := make(map[string]*progress)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				// Not test2json's: the go command itself complains.
				if _, err := fmt.Fprintln(out, strings.TrimRight(line, "\r\n")); err != nil {
					return sum, err
				}
			} else if err := sum.take(e, running, out); err != nil {
				return sum, err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return sum, err
		}
	}
	for name := range running {
		sum.fail(name, "") // the run was cut off
		if _, err := fmt.Fprintf(out, "FAIL  %s: no result\n", name); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// take counts one event and prints what it ends.
func (s *summary) take(e event, running map[string]*progress, out io.Writer) error {
	if e.Action == "build-output" {
		_, err := io.WriteString(out, e.Output)
		return err
	}
	if e.Package == "" {
		return nil // build-fail: the package's own fail follows
	}
	p := running[e.Package]
	if p == nil {
		p = &progress{output: make(map[string][]string)}
		running[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.output[e.Test] = append(p.output[e.Test], e.Output)
		return nil
	case "pass", "fail", "skip":
	default:
		return nil
	}
	if e.Test != "" {
		return s.test(e, p, out)
	}
	delete(running, e.Package)
	return s.pkg(e, p, out)
}

// test counts a test that ended.
func (s *summary) test(e event, p *progress, out io.Writer) error {
	p.tests++
	output := shorten(p.output[e.Test])
	delete(p.output, e.Test)
	switch e.Action {
	case "pass":
		s.passed++
		return nil
	case "skip":
		s.skipped++
	case "fail":
		s.fail(e.Package, e.Test)
		p.failed++
	}
	_, err := fmt.Fprintf(out, "%s  %s %s\n%s", strings.ToUpper(e.Action), e.Package, e.Test, output)
	return err
}

// fail counts a failure.
func (s *summary) fail(pkg, test string) {
	s.failed++
	s.failures = append(s.failures, strings.TrimSpace(pkg+" "+test))
}

// shorten joins lines, without the middle of many.
func shorten(lines []string) string {
	if hidden := len(lines) - headLines - tailLines; hidden > 0 {
		return strings.Join(lines[:headLines], "") + fmt.Sprintf("... %d lines ...\n", hidden) +
			strings.Join(lines[len(lines)-tailLines:], "")
	}
	return strings.Join(lines, "")
}

// pkg prints the line of a package that ended.
func (s *summary) pkg(e event, p *progress, out io.Writer) error {
	switch {
	case e.Action == "fail":
		if p.failed == 0 {
			s.fail(e.Package, "")
		}
		// What a crash left behind belongs to the test that ran.
		for _, lines := range p.output {
			if _, err := io.WriteString(out, shorten(lines)); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "FAIL  %s\n", e.Package)
		return err
	case p.tests == 0:
		return nil // no test files
	}
	_, err := fmt.Fprintf(out, "ok    %s  %d tests, %.1f s\n", e.Package, p.tests, e.Elapsed)
	return err
}
