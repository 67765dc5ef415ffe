package file

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// join joins two paths.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

// lineAt returns the line, from 0, at which a path such as
// "spec.rules[1].filters" stands in a YAML document: that of the last part of it
// that is there. An index that is missing, as in the decoder's messages, means the
// first element that has the rest.
func lineAt(text, path string) int {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return firstLine(text)
	}
	root := doc.Content[0]
	if path == "" {
		return root.Line - 1
	}
	line, _ := follow(root, steps(path), 0)
	if line == 0 {
		return root.Line - 1
	}
	return line - 1
}

// firstLine returns the first line with something on it.
func firstLine(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
			return n
		}
		n++
	}
	return 0
}

// steps cuts a path into names and indexes.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// maxFollow bounds the way down: an alias may lead back up.
const maxFollow = 100

// follow walks down from a node. It returns the line of the last node that it
// found, 0 for none, and how many steps of the path it took.
func follow(n *yaml.Node, path []string, level int) (line, depth int) {
	if len(path) == 0 || level > maxFollow {
		return 0, 0
	}
	level++
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		// A key may have dots, as those of labels do: the longest one counts.
		for take := len(path); take > 0; take-- {
			name := strings.Join(path[:take], ".")
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value != name {
					continue
				}
				below, more := follow(n.Content[i+1], path[take:], level)
				if below == 0 {
					below = n.Content[i].Line
				}
				return below, take + more
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(path[0]); err == nil {
			if i < 0 || i >= len(n.Content) {
				return 0, 0
			}
			below, more := follow(n.Content[i], path[1:], level)
			if below == 0 {
				below = n.Content[i].Line
			}
			return below, 1 + more
		}
		for _, e := range n.Content {
			if l, d := follow(e, path, level); d > depth {
				line, depth = l, d
			}
		}
	}
	return line, depth
}
