package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// The table of features stands between these lines of docs/conformance.md.
const (
	tableBegin = "<!-- features: written by test/conformance -->\n"
	tableEnd   = "<!-- end of features -->\n"
)

// report is what is read of the suite's report.
type report struct {
	GatewayAPIVersion string `json:"gatewayAPIVersion"`
	Channel           string `json:"gatewayAPIChannel"`
	Profiles          []struct {
		Name     string `json:"name"`
		Core     group  `json:"core"`
		Extended group  `json:"extended"`
	} `json:"profiles"`
}

type group struct {
	Result      string             `json:"result"`
	Statistics  map[string]float64 `json:"statistics"`
	Supported   []string           `json:"supportedFeatures"`
	Unsupported []string           `json:"unsupportedFeatures"`
}

// publish takes over a report without a failure: the file itself, and the table
// of features in the docs.
func (p paths) publish(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.module, "reports", "experimental-v1.6.3-default-report.yaml"), text, 0o644); err != nil {
		return err
	}
	var r report
	if err := yaml.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	page := filepath.Join(p.repository, "docs", "conformance.md")
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, []byte(tableBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		return errors.New("docs/conformance.md has no place for the table")
	}
	next := slices.Concat(before, []byte(tableBegin+r.markdown()+tableEnd), after)
	if bytes.Equal(old, next) {
		return nil
	}
	return os.WriteFile(page, next, 0o644)
}

func (r report) markdown() string {
	var b strings.Builder
	for _, p := range r.Profiles {
		fmt.Fprintf(&b, "\n### %s, Gateway API %s, %s channel\n\n", p.Name, r.GatewayAPIVersion, r.Channel)
		b.WriteString("| | result | passed | failed | skipped |\n| --- | --- | --- | --- | --- |\n")
		for _, g := range []struct {
			name string
			group
		}{{"core", p.Core}, {"extended", p.Extended}} {
			fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %.0f |\n", g.name, g.Result, g.Statistics["Passed"], g.Statistics["Failed"], g.Statistics["Skipped"])
		}
		b.WriteString("\n| extended feature | |\n| --- | --- |\n")
		for _, f := range p.Extended.Supported {
			fmt.Fprintf(&b, "| %s | yes |\n", f)
		}
		for _, f := range p.Extended.Unsupported {
			fmt.Fprintf(&b, "| %s | not yet |\n", f)
		}
	}
	b.WriteString("\n")
	return b.String()
}
