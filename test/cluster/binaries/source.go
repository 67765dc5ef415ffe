package binaries

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrNoSource is wrapped by the errors of [FindSource].
var ErrNoSource = errors.New("the source of the test cluster is not above the working directory")

// requirement finds the version of Kubernetes in kube-all's go.mod.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v[0-9]+\.[0-9]+\.[0-9]+)\b`)

// Source is the directory test/cluster of the repository.
type Source struct {
	dir string
}

// FindSource returns the source that belongs to the directory from: from
// itself, or test/cluster in it or in a directory above it.
func FindSource(from string) (Source, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return Source{}, fmt.Errorf("find the source: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		for _, candidate := range []string{at, filepath.Join(at, "test", "cluster")} {
			if _, err := os.Stat(filepath.Join(candidate, "kube-all", "go.mod")); err == nil {
				return Source{dir: candidate}, nil
			}
		}
		if at == filepath.Dir(at) {
			return Source{}, fmt.Errorf("%w: %s", ErrNoSource, dir)
		}
	}
}

func (s Source) kubeAll() string { return filepath.Join(s.dir, "kube-all") }

func (s Source) pause() string { return filepath.Join(s.dir, "pause") }

// version returns the version of Kubernetes, as in v1.36.3.
func (s Source) version() (string, error) {
	path := filepath.Join(s.kubeAll(), "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	match := requirement.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s does not require k8s.io/kubernetes", path)
	}
	return string(match[1]), nil
}

// hash returns a hash of the source and of seed, which stands for whatever
// else decides what is built.
func (s Source) hash(seed string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", seed)
	for _, dir := range []string{s.kubeAll(), s.pause()} {
		// WalkDir goes in lexical order.
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !isSource(d) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(s.dir, path)
			if err != nil {
				return err
			}
			// A checkout may have other line ends; the programs do not.
			content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
			fmt.Fprintf(sum, "%q %d\n%s", filepath.ToSlash(relative), len(content), content)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("hash the source: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// isSource reports whether a file decides what is built.
func isSource(d fs.DirEntry) bool {
	name := d.Name()
	if d.IsDir() || strings.HasSuffix(name, "_test.go") {
		return false
	}
	return strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum"
}
