package handover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What is in the directory.
const (
	socketFile = "handover.sock" // where the process that serves answers
	lockFile   = "lock"          // locked by every process that is alive
)

// checkDirectory makes sure that nobody else can put a socket in the way: the
// directory is ours, or the superuser's, and others can't write to it.
func checkDirectory(dir string) error {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the hand-over directory %s does not exist; make it with `headgate handover prepare`", dir)
	}
	if err != nil {
		return err
	}
	stat, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case fi.Mode().Type() == fs.ModeSymlink:
		return fmt.Errorf("the hand-over directory %s is a symbolic link; name the directory itself", dir)
	case !fi.IsDir() || !ok:
		return fmt.Errorf("%s is not a directory; name one for the hand-over", dir)
	case int(stat.Uid) != os.Geteuid() && stat.Uid != 0:
		return fmt.Errorf("the hand-over directory %s belongs to user %d and not to user %d, who runs this; chown it or make it with `headgate handover prepare`",
			dir, stat.Uid, os.Geteuid())
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to the hand-over directory %s (mode %04o); use mode 0700", dir, fi.Mode().Perm())
	}
	return nil
}

// Prepare makes dir a hand-over directory of a user: it is created if it is
// missing, gets mode 0700 and the owner. It needs no more rights than to write
// to the parent directory and CAP_CHOWN. A directory that is prepared already is
// left as it is; a symbolic link, somebody else's directory, and one with files
// that have no business there are refused.
func Prepare(dir string, uid, gid int) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist; make it, or name another directory", filepath.Dir(dir))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// O_PATH needs no right to read, which the superuser without
	// CAP_DAC_OVERRIDE does not have in a directory that is prepared.
	at, err := unix.Open(dir, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(at)
	var stat unix.Stat_t
	if err := unix.Fstat(at, &stat); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	switch kind := stat.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link; name the directory itself", dir)
	case kind != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", dir)
	case int(stat.Uid) == uid && int(stat.Gid) == gid && stat.Mode&0o7777 == 0o700:
		return nil
	case int(stat.Uid) != os.Geteuid() && int(stat.Uid) != uid:
		return fmt.Errorf("%s belongs to user %d; only a directory of user %d or of the one who runs this is taken; remove it or name another", dir, stat.Uid, uid)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d already, but with group %d and mode %04o; give it group %d and mode 0700, or remove it",
			dir, uid, stat.Gid, stat.Mode&0o7777, gid)
	}
	// The same directory, whatever the name leads to by now.
	path := fmt.Sprintf("/proc/self/fd/%d", at)
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	for _, e := range entries {
		if !expected(e) {
			return fmt.Errorf("%s contains %s, which is not of a hand-over; name a directory that is used for nothing else", dir, e.Name())
		}
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("set the mode of %s: %w", dir, err)
	}
	if err := unix.Fchownat(at, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("give %s to user %d: %w; this needs CAP_CHOWN", dir, uid, err)
	}
	return nil
}

// expected tells whether a hand-over leaves such a thing.
func expected(e fs.DirEntry) bool {
	switch e.Type() {
	case fs.ModeSocket:
		return e.Name() == socketFile || strings.HasPrefix(e.Name(), socketFile+".")
	case 0:
		return e.Name() == lockFile
	}
	return false
}

// life is this process's lock on the directory. It ends with the process.
type life struct {
	file *os.File
	// others tells that another process had the directory when this one came.
	others bool
}

func openLife(dir string) (*life, error) {
	fd, err := unix.Open(filepath.Join(dir, lockFile), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the hand-over directory %s: %w", dir, err)
	}
	l := &life{file: os.NewFile(uintptr(fd), lockFile)}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	l.others = errors.Is(err, unix.EWOULDBLOCK)
	if err == nil || l.others {
		// Waits only for another one that is right here.
		err = unix.Flock(fd, unix.LOCK_SH)
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("lock the hand-over directory %s: %w", dir, err)
	}
	return l, nil
}

func (l *life) close() { _ = l.file.Close() } // a lock has no data
