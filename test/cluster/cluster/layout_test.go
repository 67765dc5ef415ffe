package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrepare(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string) error
		err  string
	}{
		{"absent", func(*testing.T, string) error { return nil }, ""},
		{"used before", func(_ *testing.T, dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, "log"), 0o700), os.WriteFile(filepath.Join(dir, "operation.lock"), nil, 0o600))
		}, ""},
		{"a user's files", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
		}, "thesis.tex"},
		{"others may write", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777))
		}, "others may write"},
		{"a file", func(_ *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := tc.make(t, dir); err != nil {
				t.Fatal(err)
			}
			l, err := newLayout(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = l.prepare()
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if info, err := os.Stat(dir); tc.err == "" && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("directory: %v, %v", info, err)
			}
		})
	}
}

func TestLayoutHasOneName(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	direct, err := newLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	through, err := newLayout(link)
	if err != nil {
		t.Fatal(err)
	}
	if direct != through {
		t.Errorf("%v through a link, %v without", through, direct)
	}
}
