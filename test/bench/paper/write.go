//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// write stores the samples, the tables and the plots in a directory, and
// replaces the tables of the page.
func (r *result) write(dir, page string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	samples, err := r.encode()
	if err != nil {
		return err
	}
	files := map[string][]byte{"samples.jsonl": samples}
	var all strings.Builder
	all.WriteString("# The paper's experiments: measured\n\nWritten by `make bench-paper`; beside the paper's figures and explained in [docs/paper.md](../../../../docs/paper.md).\n")
	blocks := r.blocks()
	for _, b := range blocks {
		fmt.Fprintf(&all, "\n## %s\n\n%s", b.title, b.text)
	}
	if notes := r.notes(); len(notes) > 0 {
		all.WriteString("\n## What went wrong\n\n")
		for _, n := range notes {
			fmt.Fprintf(&all, "- %s\n", n)
		}
	}
	files["tables.md"] = []byte(all.String())
	plots, err := r.plots()
	if err != nil {
		return err
	}
	for name, svg := range plots {
		files[name] = svg
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	replaced, err := replaceBlocks(string(text), blocks)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(replaced), 0o644)
}

// block is a part of the page that is written by the program.
type block struct {
	name  string
	title string
	text  string // whole lines
}

// The marks around a block on the page.
func mark(name string) string { return "<!-- " + name + ": written by make bench-paper -->\n" }

const endMark = "<!-- end -->\n"

// replaceBlocks puts the blocks between their marks.
func replaceBlocks(page string, blocks []block) (string, error) {
	var missing []error
	for _, b := range blocks {
		head, rest, found := strings.Cut(page, mark(b.name))
		_, tail, closed := strings.Cut(rest, endMark)
		if !found || !closed {
			missing = append(missing, fmt.Errorf("no marks for the block %s: want %q and %q", b.name, mark(b.name), endMark))
			continue
		}
		page = head + mark(b.name) + b.text + endMark + tail
	}
	return page, errors.Join(missing...)
}
