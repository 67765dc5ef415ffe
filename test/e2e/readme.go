package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// quickStart returns the blocks of a quick start in a Markdown text, by name.
// Each is a fenced block below a comment such as
//
//	<!-- quickstart k3s: install -->
//
// It returns an error when there is none, a name comes twice, or a fence is
// missing.
func quickStart(markdown io.Reader, of string) (map[string]string, error) {
	const begin, end = "<!-- quickstart ", " -->"
	blocks := map[string]string{}
	var name string // of the block that is read, or waited for
	open := false
	lines := bufio.NewScanner(markdown)
	for lines.Scan() {
		line := lines.Text()
		fence := strings.HasPrefix(line, "```")
		switch {
		case open && fence:
			open, name = false, ""
		case open:
			blocks[name] += line + "\n"
		case fence && name != "":
			open, blocks[name] = true, ""
		case strings.HasPrefix(line, begin) && strings.HasSuffix(line, end):
			if name != "" {
				return nil, fmt.Errorf("quick start %s: no block below %q", of, name)
			}
			system, block, found := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, begin), end), ": ")
			if !found || system != of {
				continue
			}
			if _, twice := blocks[block]; twice {
				return nil, fmt.Errorf("quick start %s: two blocks %q", of, block)
			}
			name = block
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case name != "":
		return nil, fmt.Errorf("quick start %s: block %q does not end", of, name)
	case len(blocks) == 0:
		return nil, errors.New("no quick start for " + of)
	}
	return blocks, nil
}
