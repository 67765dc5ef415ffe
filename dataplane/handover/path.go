package handover

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// maxPath is what sockaddr_un holds, less the random end of a temporary name.
const maxPath = 107 - 9

// PathListener listens on a path of the file system. It belongs to whoever bound
// it last: an older listener stays open when a newer one takes the path, and its
// Close leaves the path alone.
type PathListener struct {
	*net.UnixListener
	path  string
	aside string // a name beside it that nobody else uses
	inode fs.FileInfo
}

// Listen listens on path, for this user only. A socket that is there is
// replaced in one step, dead or alive; anything else is not. network is "unix" or
// "unixpacket".
func Listen(network, path string) (*PathListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s: the path of a socket can have %d characters at most", path, maxPath)
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s exists and is not a socket; name another path or remove it", path)
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	temporary := path + "." + hex.EncodeToString(random[:])
	ln, err := net.ListenUnix(network, &net.UnixAddr{Name: temporary, Net: network})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	l := &PathListener{UnixListener: ln, path: path, aside: temporary}
	if err = os.Chmod(temporary, 0o600); err == nil {
		if l.inode, err = os.Lstat(temporary); err == nil {
			err = os.Rename(temporary, path)
		}
	}
	if err != nil {
		ln.Close()
		return nil, errors.Join(err, os.Remove(temporary))
	}
	return l, nil
}

// Ours tells whether the path still leads to this listener.
func (l *PathListener) Ours() bool {
	fi, err := os.Lstat(l.path)
	return err == nil && os.SameFile(fi, l.inode)
}

// Close stops listening and removes the path if it is still this listener's.
func (l *PathListener) Close() error {
	return errors.Join(l.remove(), l.UnixListener.Close())
}

// remove removes the path. Another listener may take it at any moment, and no
// call removes a name only if it leads to a certain file: so what is there is
// moved aside first, and put back if it is another one's.
func (l *PathListener) remove() error {
	if !l.Ours() {
		return nil
	}
	err := os.Rename(l.path, l.aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fi, err := os.Lstat(l.aside)
	if err == nil && !os.SameFile(fi, l.inode) {
		// Unless a third one has the path by now.
		if err = os.Link(l.aside, l.path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(l.aside))
}
