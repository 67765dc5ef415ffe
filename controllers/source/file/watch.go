package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/headgate/headgate/controllers/holdoff"
)

// Watch signals when Input may have changed, until ctx ends; then it closes the
// channel. A file that was put into place whole, by a rename, counts at once; one
// that is being written counts when the writing pauses. Directories that appear
// are watched too.
func (s *Source) Watch(ctx context.Context) (<-chan struct{}, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.dir, err)
	}
	w := &watcher{source: s, notify: notify, inodes: make(map[string]os.FileInfo)}
	if w.root, err = filepath.Abs(s.dir); err == nil {
		w.status, err = filepath.Abs(s.opts.StatusDir)
	}
	if err != nil {
		notify.Close()
		return nil, fmt.Errorf("watch %s: %w", s.dir, err)
	}
	if err := w.follow(); err != nil {
		notify.Close()
		return nil, err
	}
	events := make(chan holdoff.Event)
	go w.run(ctx, events)
	return holdoff.Run(ctx, events, s.opts.Holdoff), nil
}

// watcher follows the directories of a source. It is owned by its goroutine.
type watcher struct {
	source *Source
	root   string // absolute, as status
	status string
	notify *fsnotify.Watcher
	inodes map[string]os.FileInfo // of the directories that are watched
}

func (w *watcher) run(ctx context.Context, events chan<- holdoff.Event) {
	defer close(events)
	defer w.notify.Close()
	send := func(e holdoff.Event) bool {
		select {
		case events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !w.matters(e) {
				continue
			}
			kind := holdoff.Settle
			if !e.Has(fsnotify.Write) {
				kind = holdoff.Now
				w.source.blind(w.follow()) // directories may have come or gone
			}
			if !send(kind) {
				return
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			// Events were lost: what changed is not known, so all may have.
			w.source.blind(w.follow())
			if !send(holdoff.Settle) {
				return
			}
		}
	}
}

// blind notes that a part of the directory can't be watched, or that all of it can.
func (s *Source) blind(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatched = err
}

// matters tells whether an event may change what Input says.
func (w *watcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	if e.Name == w.root {
		return true
	}
	dir, name := filepath.Split(e.Name)
	if dir = filepath.Clean(dir); dir == filepath.Dir(w.root) && dir != w.root {
		return false // a neighbour of the directory itself
	}
	if e.Name == w.status || strings.HasPrefix(e.Name, w.status+string(filepath.Separator)) {
		return false
	}
	// A mounted ConfigMap is changed by moving the link "..data".
	return !strings.HasPrefix(name, ".") || name == "..data"
}

// follow watches the directories that are there now, and the one above, where a
// replaced directory shows. It looks again until there is no new one: what was made
// in one after it was listed and before it was watched is told by no event.
func (w *watcher) follow() error {
	for {
		more, err := w.once()
		if !more {
			return err
		}
	}
}

// once watches the directories that are found now, and tells whether some of them
// were not watched before.
func (w *watcher) once() (more bool, err error) {
	dirs := append(directories(w.root, w.status), filepath.Dir(w.root))
	want := make(map[string]os.FileInfo, len(dirs))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			want[dir] = info
		}
	}
	for dir, was := range w.inodes {
		if now := want[dir]; now == nil || !os.SameFile(was, now) {
			_ = w.notify.Remove(dir) // an error means that the kernel was faster
			delete(w.inodes, dir)
		}
	}
	var first error
	for dir, info := range want {
		if w.inodes[dir] != nil {
			continue
		}
		if err := w.notify.Add(dir); err != nil {
			if first == nil {
				first = fmt.Errorf("watch %s: %w", dir, err)
				if errors.Is(err, syscall.ENOSPC) {
					first = fmt.Errorf("%w; raise fs.inotify.max_user_watches", first)
				}
			}
			continue
		}
		w.inodes[dir] = info
		more = true
	}
	return more, first
}
