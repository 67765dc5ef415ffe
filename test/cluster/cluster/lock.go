package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// machineLock is the lock of the whole machine. Its place must not depend on
// the user or the environment.
const machineLock = "/tmp/headgate-test-cluster.lock"

// Holder is who holds the machine's lock.
type Holder struct {
	PID   int       `json:"pid"` // of a process that keeps it held
	Dir   string    `json:"dir"` // state directory
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"`
}

// HeldError tells that another cluster is up on this machine, or on its way.
type HeldError struct {
	Holder Holder // zero if it can't be told
	// Ended tells that the holder has ended without ending what it started,
	// which keeps the lock held.
	Ended bool
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return "another test cluster is up on this machine; who it is can't be told from " + machineLock
	}
	ended := ""
	if e.Ended {
		ended = " (which has ended, but what it started runs on)"
	}
	return fmt.Sprintf("another test cluster (%s) is up on this machine: pid %d%s, directory %s, since %s; end it first: down --dir %s",
		e.Holder.Mode, e.Holder.PID, ended, e.Holder.Dir, e.Holder.Since.Local().Format("15:04:05"), e.Holder.Dir)
}

// lock is a file lock of the kernel's. It is held until the last process that
// has the open file ends: the programs of a cluster inherit it, so it can
// neither be lost while one of them runs nor be left behind by a crash.
type lock struct {
	file *os.File
}

// acquire takes the lock in the file path, or returns a [HeldError] at once.
func acquire(path string) (*lock, error) {
	file, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &lock{file: file}, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("take the lock %s: %w", path, err), file.Close())
	}
	held := &HeldError{Holder: readHolder(path)}
	_, _, err = readStat(held.Holder.PID)
	held.Ended = isAbsent(err)
	return nil, errors.Join(held, file.Close())
}

// openLock opens the file, which any user may hold in turn. It follows no link:
// in /tmp anyone may have put one there.
func openLock(path string) (*os.File, error) {
	// Not with O_CREATE first: in /tmp the kernel may refuse that for another user's file.
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return file, err
	}
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o666); err != nil {
		return nil, err
	}
	if err := file.Chmod(0o666); err != nil { // whatever the umask is
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// describe says in the lock's file who holds it.
func (l *lock) describe(h Holder) error {
	content, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("describe the lock's holder: %w", err)
	}
	return l.replace(append(content, '\n'))
}

// clear says in the lock's file that nobody is up.
func (l *lock) clear() error { return l.replace(nil) }

func (l *lock) replace(content []byte) error {
	err := l.file.Truncate(0)
	if err == nil {
		_, err = l.file.WriteAt(content, 0)
	}
	if err != nil {
		return fmt.Errorf("describe the lock's holder: %w", err)
	}
	return nil
}

// close gives up this process's part of the lock. The processes that
// inherited it still hold it.
func (l *lock) close() error { return l.file.Close() }

// readHolder returns who holds, or last held, the lock; zero if nobody does or
// it can't be told.
func readHolder(path string) Holder {
	content, err := os.ReadFile(path)
	if err != nil {
		return Holder{}
	}
	var h Holder
	if json.Unmarshal(content, &h) != nil {
		return Holder{} // it is being written
	}
	return h
}
