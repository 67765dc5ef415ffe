package accesslog

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// File is a log file that can be reopened while it is written to.
type File struct {
	path    string
	current atomic.Pointer[os.File]
	mu      sync.Mutex // one Reopen or Close at a time
}

// OpenFile opens or makes the file at path for appending.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	if err := f.Reopen(); err != nil {
		return nil, err
	}
	return f, nil
}

// Reopen opens the path anew and closes what was open: call it after the file
// was renamed. On an error the old file stays in use.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("access log: %w", err)
	}
	if old := f.current.Swap(next); old != nil {
		return old.Close()
	}
	return nil
}

// Write appends p.
func (f *File) Write(p []byte) (int, error) {
	written := 0
	for {
		file := f.current.Load()
		n, err := file.Write(p[written:])
		written += n
		// Reopen may have closed it after the Load: the rest goes to the new one.
		if errors.Is(err, os.ErrClosed) && f.current.Load() != file {
			continue
		}
		return written, err
	}
}

// Close closes the file. A Write that is stuck in it fails.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.Load().Close()
}
