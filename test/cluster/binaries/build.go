package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/test/cluster/image"
)

// PauseImage is the name of the image of every pod's first container. No
// registry has it.
const PauseImage = "local.test/pause:1"

// PauseArchive is the archive of [PauseImage], relative to a cache's directory.
const PauseArchive = "images/pause.tar"

// Build builds part, unless it is there, and says on progress what it does.
// Two builds into one cache wait for each other. The go command and all that
// it obeys (GOFLAGS, GOMAXPROCS, GOCACHE) are the caller's.
func (c *Cache) Build(ctx context.Context, part Part, progress io.Writer) (err error) {
	if err := os.MkdirAll(c.Bin(), 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := c.lock(ctx, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if len(c.Missing(part)) == 0 {
		fmt.Fprintf(progress, "%s of %s is built: %s\n", part.name, c.version, c.dir)
		return nil
	}
	fmt.Fprintf(progress, "building %s of Kubernetes %s into %s\n", part.name, c.version, c.dir)
	fmt.Fprintln(progress, "the first build takes up to 12 minutes on 2 cores and fills 3.2 GB of Go's build cache; later ones take about a minute")
	start := time.Now()
	if err := c.buildPart(ctx, part, progress); err != nil {
		return err
	}
	if part.pause {
		if err := c.buildPause(ctx, progress); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "built %s in %s\n", part.name, time.Since(start).Round(time.Second))
	return nil
}

// lock makes this process the only one that builds into the cache.
func (c *Cache) lock(ctx context.Context, progress io.Writer) (unlock func() error, err error) {
	file, err := os.OpenFile(filepath.Join(c.dir, "build.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file.Close, nil // the lock goes with the file
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the cache: %w", err), file.Close())
		}
		if !said {
			fmt.Fprintf(progress, "another build into %s is at work: waiting for it\n", c.dir)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(time.Second):
		}
	}
}

// buildPart builds the part's binary and names it by each of its programs.
func (c *Cache) buildPart(ctx context.Context, part Part, progress io.Writer) error {
	target := "kube-" + part.name
	if len(part.programs) == 1 {
		target = part.programs[0]
	}
	path := filepath.Join(c.Bin(), target)
	if err := c.compile(ctx, c.source.kubeAll(), part.pkg, linkFlags(c.version), path, progress); err != nil {
		return fmt.Errorf("build %s: %w", part.name, err)
	}
	for _, program := range part.programs {
		if program == target {
			continue
		}
		if err := replaceLink(target, filepath.Join(c.Bin(), program)); err != nil {
			return fmt.Errorf("name %s as %s: %w", target, program, err)
		}
	}
	return nil
}

func (c *Cache) buildPause(ctx context.Context, progress io.Writer) (err error) {
	path := filepath.Join(c.Bin(), "pause")
	if err := c.compile(ctx, filepath.Dir(c.source.pause()), "./pause", "-s -w", path, progress); err != nil {
		return fmt.Errorf("build pause: %w", err)
	}
	root, err := os.MkdirTemp(c.dir, "pause-*")
	if err != nil {
		return fmt.Errorf("build the pause image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	program, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("build the pause image: %w", err)
	}
	copied := filepath.Join(root, "pause")
	err = os.WriteFile(copied, program, 0o700)
	if err == nil {
		err = os.Chmod(copied, 0o755) // any user's pods run it, whatever the umask is
	}
	if err != nil {
		return fmt.Errorf("build the pause image: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.pauseArchive()), 0o755); err != nil {
		return fmt.Errorf("build the pause image: %w", err)
	}
	return image.Write(c.pauseArchive(), image.Spec{Names: []string{PauseImage}, Root: root, Entrypoint: []string{"/pause"}})
}

// compile builds a static program from the package pkg of the module in dir.
func (c *Cache) compile(ctx context.Context, dir, pkg, linkFlags, out string, progress io.Writer) error {
	environment := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	list := exec.CommandContext(ctx, "go", "list", "-deps", pkg)
	list.Dir = dir
	list.Env = environment
	list.Stderr = progress // "go: downloading ...", and what is wrong
	packages, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	counter := newCounter(progress, bytes.Count(packages, []byte("\n")), time.Now())
	unfinished := out + ".unfinished"
	build := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags="+linkFlags, "-o", unfinished, pkg)
	build.Dir = dir
	build.Env = environment
	build.Stderr = counter // the names of the packages, as each one begins
	// An interrupt ends the compilers with the go command, which removes its work directory.
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = 10 * time.Second
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, strings.Join(counter.complaints, "\n"))
	}
	return os.Rename(unfinished, out)
}

// replaceLink makes path a symbolic link to target, whatever path was.
func replaceLink(target, path string) error {
	unfinished := path + ".unfinished"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
