package file

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestFollowNewDirectories makes directories in one another while they are being
// followed: each is watched in the end.
func TestFollowNewDirectories(t *testing.T) {
	base := t.TempDir()
	for i := range 300 {
		root := filepath.Join(base, strconv.Itoa(i))
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{root: root, notify: notify, inodes: make(map[string]os.FileInfo)}
		if err := w.follow(); err != nil {
			t.Fatal(err)
		}
		made := make(chan error, 1)
		go func() { made <- os.MkdirAll(filepath.Join(root, "a", "b", "c", "d"), 0o755) }()
		late := time.After(10 * time.Second)
		for len(w.inodes) < 6 { // the one above, the root, and four
			select {
			case <-notify.Events:
				if err := w.follow(); err != nil {
					t.Fatal(err)
				}
			case <-late:
				t.Fatalf("only these are watched: %v", notify.WatchList())
			}
		}
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		notify.Close()
	}
}
