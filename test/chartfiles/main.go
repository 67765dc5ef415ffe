// Command chartfiles writes what the Helm chart and its document repeat of other
// files, so that each thing is said in one place: charts/headgate/files has the
// rights of config/rbac and the CRDs of config/crd, and docs/values.md the values'
// schema. With -check it writes nothing, and fails on a difference. It is run in
// the repository's directory.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	chartDir  = "charts/headgate"
	filesDir  = chartDir + "/files"
	valuesDoc = "docs/values.md"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail on a difference")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "chartfiles:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	want, err := files()
	if err != nil {
		return err
	}
	have, err := filepath.Glob(filesDir + "/*/*")
	if err != nil {
		return err
	}
	for _, path := range have {
		if _, ok := want[path]; ok {
			continue
		}
		if check {
			return fmt.Errorf("%s is a copy of nothing; run make generate", path)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, want[path]) {
			continue
		}
		if check {
			return fmt.Errorf("%s is not as generated; run make generate", path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, want[path], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns all that is written, by path.
func files() (map[string][]byte, error) {
	out := make(map[string][]byte)
	for kind, pattern := range map[string]string{"crds": "config/crd/headgate.dev_*.yaml", "rbac": "config/rbac/*.yaml"} {
		from, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		if len(from) == 0 {
			return nil, fmt.Errorf("no file is like %s: run this in the repository's directory", pattern)
		}
		for _, path := range from {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			// Of the rights, the roles only.
			if kind == "rbac" && !bytes.Contains(text, []byte("\nrules:\n")) {
				continue
			}
			out[filepath.Join(filesDir, kind, filepath.Base(path))] = text
		}
	}
	schema, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		return nil, err
	}
	values, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		return nil, err
	}
	if out[valuesDoc], err = document(schema, values); err != nil {
		return nil, err
	}
	return out, nil
}
