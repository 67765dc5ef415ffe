package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Name is the image's name without a tag. config/manager has the same.
const Name = "ghcr.io/headgate/headgate"

// Source is where the image is made from.
type Source struct {
	Dir      string    // the repository's top directory
	Version  string    // what `headgate version` says
	Revision string    // commit; may be empty
	Created  time.Time // of the commit; every time in the image is this one
}

// FindSource looks for the repository from the directory from upwards, and asks
// git for what is not given: version and revision, when they are empty, and the
// time, unless the environment has SOURCE_DATE_EPOCH.
func FindSource(ctx context.Context, from, version, revision string) (Source, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return Source{}, err
	}
	for !isRepository(dir) {
		if dir == filepath.Dir(dir) {
			return Source{}, fmt.Errorf("%s is not in a checkout of Headgate", from)
		}
		dir = filepath.Dir(dir)
	}
	s := Source{Dir: dir, Version: version, Revision: revision}
	if s.Version == "" {
		if s.Version, err = git(ctx, dir, "describe", "--tags", "--always", "--dirty"); err != nil {
			return Source{}, fmt.Errorf("find the version: %w; give it with -version", err)
		}
	}
	if strings.ContainsAny(s.Version, " \t\r\n'\"") {
		return Source{}, fmt.Errorf("version %q has spaces or quotes; give another one with -version", s.Version)
	}
	if Tag(s.Version) == "" {
		return Source{}, fmt.Errorf("version %q has no letter or digit to make an image's tag of", s.Version)
	}
	if s.Revision == "" {
		if head, err := git(ctx, dir, "rev-parse", "HEAD"); err == nil {
			s.Revision = head
		}
	}
	epoch, ok := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !ok {
		if epoch, err = git(ctx, dir, "log", "-1", "--format=%ct"); err != nil {
			return Source{}, fmt.Errorf("find the time of the commit: %w; give it in SOURCE_DATE_EPOCH", err)
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return Source{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds since 1970", epoch)
	}
	s.Created = time.Unix(seconds, 0).UTC()
	return s, nil
}

func isRepository(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && strings.HasPrefix(string(text), "module github.com/headgate/headgate\n")
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	// The checkout may belong to another user.
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", dir}, args...)...)
	out, err := c.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// unfit is what a tag can't have: the specification allows
// [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// Tag returns version as an image's tag: what a tag can't have becomes a dash.
// It is empty when nothing is left.
func Tag(version string) string {
	tag := strings.TrimLeft(unfit.ReplaceAllString(version, "-"), ".-")
	return tag[:min(len(tag), 128)]
}

// Reference returns the image's full name.
func (s Source) Reference() string { return Name + ":" + Tag(s.Version) }
