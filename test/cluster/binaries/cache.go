package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Cache is the directory of the programs that belong to one source, one Go
// version and one architecture:
//
//	bin/     the programs, by the names that Kubernetes gives them, and pause
//	images/  pause.tar, the image of every pod's first container
type Cache struct {
	source  Source
	version string
	dir     string
}

// DefaultRoot returns the directory that holds the caches unless another is
// asked for: headgate-test in the user's cache directory.
func DefaultRoot() (string, error) {
	dir, err := os.UserCacheDir() // XDG_CACHE_HOME or ~/.cache
	if err != nil {
		return "", fmt.Errorf("find a place for the binaries: %w", err)
	}
	return filepath.Join(dir, "headgate-test"), nil
}

// Open returns the cache of source under root. It creates nothing.
func Open(ctx context.Context, source Source, root string) (*Cache, error) {
	version, err := source.version()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = source.kubeAll()
	command.Stderr = os.Stderr
	toolchain, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its version: %w", err)
	}
	seed := strings.Join([]string{version, strings.TrimSpace(string(toolchain)), runtime.GOARCH, linkFlags(version)}, "\n")
	hash, err := source.hash(seed)
	if err != nil {
		return nil, err
	}
	return &Cache{source: source, version: version, dir: filepath.Join(root, version+"-"+hash)}, nil
}

// OpenDefault returns the cache of the source that the working directory
// belongs to, in the default root.
func OpenDefault(ctx context.Context) (*Cache, error) {
	source, err := FindSource(".")
	if err != nil {
		return nil, err
	}
	root, err := DefaultRoot()
	if err != nil {
		return nil, err
	}
	return Open(ctx, source, root)
}

// Dir returns the cache's directory.
func (c *Cache) Dir() string { return c.dir }

// Bin returns the directory of the programs, which serves as envtest's
// KUBEBUILDER_ASSETS.
func (c *Cache) Bin() string { return filepath.Join(c.dir, "bin") }

func (c *Cache) pauseArchive() string { return filepath.Join(c.dir, filepath.FromSlash(PauseArchive)) }

// Version returns the version of Kubernetes, as in v1.36.3.
func (c *Cache) Version() string { return c.version }

// Missing returns what of part is not built yet; nothing if all of it is.
func (c *Cache) Missing(part Part) []string {
	paths := make([]string, 0, len(part.programs)+2)
	for _, program := range part.programs {
		paths = append(paths, filepath.Join(c.Bin(), program))
	}
	if part.pause {
		paths = append(paths, filepath.Join(c.Bin(), "pause"), c.pauseArchive())
	}
	var missing []string
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil { // follows links: one that leads nowhere is missing, too
			missing = append(missing, path)
		}
	}
	return missing
}

// Older returns the caches of other versions or sources beside this one.
func (c *Cache) Older() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(c.dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for older caches: %w", err)
	}
	var older []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "v") && e.Name() != filepath.Base(c.dir) {
			older = append(older, filepath.Join(filepath.Dir(c.dir), e.Name()))
		}
	}
	return older, nil
}

// linkFlags returns the linker's flags. Charts and clients check the version
// that the API server reports, so it must be a real one.
func linkFlags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	flags := []string{"-s", "-w"}
	for _, variable := range []struct{ name, value string }{
		{"gitVersion", version},
		{"gitMajor", parts[0]},
		{"gitMinor", parts[1]},
		{"gitTreeState", "clean"},
		{"buildDate", "2026-01-01T00:00:00Z"}, // a fixed one, so that the same source gives the same bytes
	} {
		// One for the version that a program reports, one for its user agent.
		for _, pkg := range []string{"component-base/version", "client-go/pkg/version"} {
			flags = append(flags, fmt.Sprintf("-X k8s.io/%s.%s=%s", pkg, variable.name, variable.value))
		}
	}
	return strings.Join(flags, " ")
}
