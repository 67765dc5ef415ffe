package file

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watching starts to watch; next waits for a signal, or fails; calm waits until no
// more come, since a change may come as several events; quiet fails if one comes.
func watching(t *testing.T, s *Source) (next func(what string), calm func(), quiet func(what string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ch, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next = func(what string) {
		t.Helper()
		select {
		case _, ok := <-ch:
			if !ok {
				t.Fatalf("%s: the channel is closed", what)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no signal", what)
		}
	}
	calm = func() {
		for {
			select {
			case <-ch:
			case <-time.After(300 * time.Millisecond):
				return
			}
		}
	}
	quiet = func(what string) {
		t.Helper()
		select {
		case <-ch:
			t.Errorf("%s: a signal", what)
		case <-time.After(150 * time.Millisecond):
		}
	}
	return next, calm, quiet
}

// settle takes signals until the values are those, so that a change that comes as
// several events is waited for.
func settle(t *testing.T, s *Source, next func(string), what, want string) {
	t.Helper()
	for {
		next(what)
		if in, _ := s.Input(); values(in) == want {
			return
		}
	}
}

// TestWatch makes every kind of change that an editor or an orchestrator makes.
func TestWatch(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", configMap("a", "1"))
	s := f.open(Options{})
	next, calm, quiet := watching(t, s)
	f.expect(s, "a=1@1")

	f.write("a.yaml", configMap("a", "2"))
	settle(t, s, next, "a file written in place", "a=2@2")

	f.write(".a.yaml.tmp", configMap("a", "3"))
	if err := os.Rename(filepath.Join(f.path, ".a.yaml.tmp"), filepath.Join(f.path, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	settle(t, s, next, "a file replaced by a rename", "a=3@3")

	f.write("b.yaml", configMap("b", "1"))
	settle(t, s, next, "a new file", "a=3@3 b=1@1")

	f.write("new/deep/c.yaml", configMap("c", "1"))
	settle(t, s, next, "a file in a new directory", "a=3@3 b=1@1 c=1@1")

	f.write("new/deep/c.yaml", configMap("c", "2"))
	settle(t, s, next, "a change there", "a=3@3 b=1@1 c=2@2")

	f.remove("new")
	settle(t, s, next, "a directory removed", "a=3@3 b=1@1")

	calm()
	f.write("status/x.yaml", "x")
	quiet("a status") // besides that of the directory itself, which is left out too
	f.write(".swp", "x")
	quiet("a hidden file")
	if err := os.WriteFile(f.path+".neighbour", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	quiet("a neighbour of the directory")
	if err := os.Chmod(filepath.Join(f.path, "a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet("a mode")
}

// TestWatchMount follows the mount of a ConfigMap, whose files are links to a
// hidden directory that is replaced.
func TestWatchMount(t *testing.T) {
	f := newFolder(t)
	f.write("..1/a.yaml", configMap("a", "1"))
	f.link("..1", "..data")
	f.link("..data/a.yaml", "a.yaml")
	s := f.open(Options{})
	next, _, _ := watching(t, s)
	f.expect(s, "a=1@1")
	for i, name := range []string{"..2", "..3"} {
		f.write(name+"/a.yaml", configMap("a", name))
		f.link(name, "..data_tmp")
		if err := os.Rename(filepath.Join(f.path, "..data_tmp"), filepath.Join(f.path, "..data")); err != nil {
			t.Fatal(err)
		}
		f.remove([]string{"..1", "..2"}[i])
		settle(t, s, next, name, []string{"a=..2@2", "a=..3@3"}[i])
	}
}

// TestWatchReplaced follows a directory that is a link which is moved, as
// deployments do, and one that is replaced.
func TestWatchReplaced(t *testing.T) {
	f := newFolder(t)
	f.write("v1/a.yaml", configMap("a", "1"))
	f.write("v2/a.yaml", configMap("a", "2"))
	f.link("v1", "current")
	s, err := Open(filepath.Join(f.path, "current"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, _, _ := watching(t, s)
	f.expect(s, "a=1@1")
	f.link("v2", "next")
	if err := os.Rename(filepath.Join(f.path, "next"), filepath.Join(f.path, "current")); err != nil {
		t.Fatal(err)
	}
	settle(t, s, next, "the link moved", "a=2@2")
	f.write("v2/a.yaml", configMap("a", "3"))
	settle(t, s, next, "a change behind the new link", "a=3@3")
	if err := os.Rename(filepath.Join(f.path, "v2"), filepath.Join(f.path, "old")); err != nil {
		t.Fatal(err)
	}
	f.write("v2/a.yaml", configMap("a", "4"))
	f.link("v2", "next")
	if err := os.Rename(filepath.Join(f.path, "next"), filepath.Join(f.path, "current")); err != nil {
		t.Fatal(err)
	}
	settle(t, s, next, "a new directory behind the same name", "a=4@4")
}

// TestWatchLink follows a file that is a link to one elsewhere.
func TestWatchLink(t *testing.T) {
	f, other := newFolder(t), newFolder(t)
	other.write("real.yaml", configMap("a", "1"))
	f.link(filepath.Join(other.path, "real.yaml"), "a.yaml")
	s := f.open(Options{})
	next, _, _ := watching(t, s)
	f.expect(s, "a=1@1")
	other.write("real.yaml", configMap("a", "2"))
	settle(t, s, next, "the file that is linked to", "a=2@2")
}

// TestWatchHere watches the working directory by its short name.
func TestWatchHere(t *testing.T) {
	f := newFolder(t)
	t.Chdir(f.path)
	s, err := Open(".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, _, _ := watching(t, s)
	f.write("a.yaml", configMap("a", "1"))
	settle(t, s, next, "a new file", "a=1@1")
}

func TestWatchEnds(t *testing.T) {
	s := newFolder(t).open(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ch, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case _, ok := <-ch:
		if ok {
			t.Error("a signal")
		}
	case <-time.After(10 * time.Second):
		t.Error("the channel stays open")
	}
}

// TestWatchStorm writes without a pause: the signals are few, and the last state
// is seen.
func TestWatchStorm(t *testing.T) {
	f := newFolder(t)
	f.write("a.yaml", configMap("a", "0"))
	s := f.open(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const writes = 500
	for range writes {
		f.write("a.yaml", configMap("a", "1"))
	}
	f.write("a.yaml", configMap("a", "2"))
	signals := 0
	for {
		select {
		case <-ch:
		case <-time.After(10 * time.Second):
			t.Fatal("no signal")
		}
		signals++
		if in, _ := s.Input(); in.ConfigMaps[0].Data["v"] == "2" {
			break
		}
	}
	if signals > writes/4 {
		t.Errorf("%d signals for %d writes", signals, writes)
	}
}

// TestUnwatched: what can't be watched is said, until it can.
func TestUnwatched(t *testing.T) {
	f := newFolder(t)
	f.write("sub/a.yaml", configMap("a", "1"))
	s := f.open(Options{})
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	notify.Close() // now it takes nothing more
	w := &watcher{source: s, root: f.path, status: f.path + "/status", notify: notify, inodes: make(map[string]os.FileInfo)}
	s.blind(w.follow())
	if _, ps := s.Input(); len(ps) != 1 || ps[0].Reason != "Unwatched" || ps[0].File != f.path {
		t.Errorf("problems: %v", ps)
	}
	s.blind(nil)
	f.expect(s, "a=1@1")
}

func TestMatters(t *testing.T) {
	w := &watcher{root: "/etc/headgate", status: "/etc/headgate/status"}
	for _, tt := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"/etc/headgate/a.yaml", fsnotify.Write, true},
		{"/etc/headgate/a.yaml", fsnotify.Chmod, false},
		{"/etc/headgate/a.yaml", fsnotify.Chmod | fsnotify.Write, true},
		{"/etc/headgate/dir", fsnotify.Create, true},
		{"/etc/headgate", fsnotify.Remove, true},
		{"/etc/passwd", fsnotify.Write, false},
		{"/etc/headgate/status", fsnotify.Create, false},
		{"/etc/headgate/status/a.yaml", fsnotify.Write, false},
		{"/etc/headgate/statusx.yaml", fsnotify.Write, true},
		{"/etc/headgate/.a.yaml.swp", fsnotify.Write, false},
		{"/etc/headgate/m/..data", fsnotify.Create, true},
		{"/somewhere/else/a.yaml", fsnotify.Write, true},
	} {
		if got := w.matters(fsnotify.Event{Name: tt.name, Op: tt.op}); got != tt.want {
			t.Errorf("%s %s: %v", tt.op, tt.name, got)
		}
	}
}
