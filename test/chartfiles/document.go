package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document returns the page about the values: a table for the top level, and one
// for each group of values, in the schema's order. A value must be described in
// the schema and have a default in the values.
func document(schema, values []byte) ([]byte, error) {
	var s, v yaml.Node // JSON is YAML; nodes keep the order
	if err := yaml.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	if err := yaml.Unmarshal(values, &v); err != nil {
		return nil, fmt.Errorf("the values: %w", err)
	}
	if len(s.Content) != 1 || len(v.Content) != 1 {
		return nil, errors.New("the schema or the values are empty")
	}
	var d page
	d.WriteString("# Values of the Helm chart\n\nWritten by `make generate` from `charts/headgate/values.schema.json`, which refuses everything else, and `values.yaml`. " +
		"How to install: [install.md](install.md).\n")
	if err := d.group("", s.Content[0], v.Content[0]); err != nil {
		return nil, err
	}
	return d.Bytes(), nil
}

// page is the page as far as it is written.
type page struct {
	bytes.Buffer
}

// group writes the table of an object's values, then those of the groups in it.
func (d *page) group(prefix string, schema, defaults *yaml.Node) error {
	if prefix != "" {
		fmt.Fprintf(d, "\n## %s\n\n", prefix)
		if text := scalar(schema, "description"); text != "" {
			d.WriteString(text + "\n")
		}
	}
	d.WriteString("\n| value | default | what it means |\n| --- | --- | --- |\n")
	type inner struct {
		name             string
		schema, defaults *yaml.Node
	}
	var groups []inner
	properties := member(schema, "properties")
	for i := 0; properties != nil && i+1 < len(properties.Content); i += 2 {
		name, one := properties.Content[i].Value, properties.Content[i+1]
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		text := scalar(one, "description")
		if text == "" {
			return fmt.Errorf("the schema does not describe %s", path)
		}
		def := member(defaults, name)
		if def == nil && name != "global" {
			return fmt.Errorf("values.yaml has no %s", path)
		}
		if member(one, "properties") != nil && scalar(one, "title") != "" {
			groups = append(groups, inner{path, one, def})
			fmt.Fprintf(d, "| [`%s`](#%s) | | %s |\n", path, strings.ToLower(strings.ReplaceAll(path, ".", "")), text)
			continue
		}
		value, err := compact(def)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if limits := limits(one); limits != "" {
			text += " " + limits
		}
		fmt.Fprintf(d, "| `%s` | %s | %s |\n", path, value, strings.ReplaceAll(text, "|", `\|`))
	}
	for _, g := range groups {
		if err := d.group(g.name, g.schema, g.defaults); err != nil {
			return err
		}
	}
	return nil
}

// limits says what a value may be, where that can be said shortly.
func limits(schema *yaml.Node) string {
	if list := member(schema, "enum"); list != nil {
		var all []string
		for _, v := range list.Content {
			all = append(all, "`"+v.Value+"`")
		}
		return "One of " + strings.Join(all, ", ") + "."
	}
	low, high := scalar(schema, "minimum"), scalar(schema, "maximum")
	if low == "" || high == "" {
		return ""
	}
	return fmt.Sprintf("%s to %s.", low, high)
}

// compact returns a default as one line.
func compact(v *yaml.Node) (string, error) {
	if v == nil {
		return "", nil
	}
	var value any
	if err := v.Decode(&value); err != nil {
		return "", err
	}
	if value == "" {
		return "", nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return "`" + string(text) + "`", nil
}

// member returns the value of a key of a mapping, or nil.
func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// scalar returns the text of a key of a mapping, or "".
func scalar(n *yaml.Node, key string) string {
	if v := member(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}
