package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/test/image/sbom"
)

// compile builds the program for p into the file out.
func compile(ctx context.Context, s Source, p Platform, out string) error {
	c := goCommand(ctx, s, p, "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", "-s -w -X main.version="+s.Version, "-o", out, "./cmd/headgate")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", p, err, text)
	}
	return nil
}

// packages lists what the program is made of, with the directories that their
// licences are in.
func packages(ctx context.Context, s Source, p Platform) ([]sbom.Package, error) {
	const format = `{{with .Module}}{{.Path}}{{"\t"}}{{.Dir}}{{else}}{{"\t"}}{{end}}{{"\t"}}{{.Dir}}`
	c := goCommand(ctx, s, p, "list", "-deps", "-mod=readonly", "-f", format, "./cmd/headgate")
	var complaint bytes.Buffer
	c.Stderr = &complaint
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages for %s: %w\n%s", p, err, &complaint)
	}
	root, err := goCommand(ctx, s, p, "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the Go toolchain: %w", err)
	}
	var all []sbom.Package
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("list the packages for %s: %q is not understood", p, line)
		}
		pkg := sbom.Package{Module: fields[0], Root: fields[1], Dir: fields[2]}
		if pkg.Module == "" {
			pkg.Module, pkg.Root = sbom.Standard, strings.TrimSpace(string(root))
		}
		all = append(all, pkg)
	}
	return all, nil
}

// goCommand is the go command, for p. What the caller's environment says of the
// result is overridden: the same source shall give the same bytes.
func goCommand(ctx context.Context, s Source, p Platform, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = s.Dir
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+p.Arch, "GOARM="+p.Arm, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "PWD="+filepath.Clean(s.Dir))
	return c
}
