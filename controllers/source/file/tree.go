package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/controllers/compile"
)

// The bounds of what is read.
const (
	maxDepth    = 16       // directories in directories
	maxFiles    = 20_000   // files
	maxFileSize = 32 << 20 // bytes of one file
)

// written starts the files that package status writes.
const written = "# Written by Headgate."

// tree is what one walk over the directory found.
type tree struct {
	files map[string]string // contents, by path
	// unread are paths, of files or directories, that are there and could not be
	// read. What was known of them stays.
	unread   []string
	problems []compile.Problem
	// watch are the directories on which a change of the tree shows.
	watch []string
}

// walker walks a directory. Links are followed, as the mounts of ConfigMaps need.
type walker struct {
	tree
	skip     string // the status directory
	dirsOnly bool   // read no file
	seen     map[string]bool
}

// walk reads every YAML and JSON file below root. Names that start with a dot are
// left out, and so is the directory skip.
func walk(root, skip string) *tree {
	w := &walker{tree: tree{files: make(map[string]string)}, skip: skip, seen: make(map[string]bool)}
	w.dir(root, 0)
	return &w.tree
}

// directories returns the directories on which a change of the tree shows.
func directories(root, skip string) []string {
	w := &walker{skip: skip, dirsOnly: true, seen: make(map[string]bool)}
	w.dir(root, 0)
	return w.watch
}

func (w *walker) fail(path string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	w.unread = append(w.unread, path)
	w.problems = append(w.problems, compile.Problem{
		Severity: compile.Error, File: path, Reason: "Unreadable", Message: fmt.Sprintf("can't be read: %v", err),
	})
}

func (w *walker) dir(path string, depth int) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		w.fail(path, err)
		return
	}
	if w.seen[real] {
		return // a link back up, or a second link to one place
	}
	w.seen[real] = true
	w.watch = append(w.watch, path)
	if depth > maxDepth {
		w.fail(path, fmt.Errorf("it is more than %d directories deep", maxDepth))
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		w.fail(path, err)
		return
	}
	for _, e := range entries {
		child := filepath.Join(path, e.Name())
		if strings.HasPrefix(e.Name(), ".") || child == w.skip {
			continue
		}
		w.entry(child, e.Type(), depth)
	}
}

func (w *walker) entry(path string, mode fs.FileMode, depth int) {
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(path)
		if err != nil {
			if readable(path) {
				w.fail(path, fmt.Errorf("the link leads nowhere: %w", err))
			}
			return
		}
		mode = info.Mode()
		// A change of what the link leads to shows where that is.
		if real, err := filepath.EvalSymlinks(path); err == nil && !mode.IsDir() && readable(path) {
			w.watch = append(w.watch, filepath.Dir(real))
		}
	}
	switch {
	case mode.IsDir():
		w.dir(path, depth+1)
	case !readable(path):
	case !mode.IsRegular():
		w.fail(path, errors.New("it is not a regular file"))
	case !w.dirsOnly:
		w.file(path)
	}
}

// readable tells whether a name is one of a file that is read.
func readable(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (w *walker) file(path string) {
	if len(w.files) >= maxFiles {
		w.fail(path, fmt.Errorf("there are more than %d files", maxFiles))
		return
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return // removed since the directory was read
	}
	if err != nil {
		w.fail(path, err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	switch {
	case err != nil:
		w.fail(path, err)
	case len(data) > maxFileSize:
		w.fail(path, fmt.Errorf("it has more than %d bytes", maxFileSize))
	case strings.HasPrefix(string(data[:min(len(data), len(written))]), written):
		// A status, wherever it was put: it says what objects came to.
	default:
		w.files[path] = string(data)
	}
}
