package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// peer is the connection to another process. One goroutine receives; any may
// send.
type peer struct {
	conn  *net.UnixConn
	now   func() time.Time
	build string // from the other one's hello

	mu sync.Mutex // held while sending
}

// patience bounds each step for which the other process has to do something at
// once.
const patience = 2 * time.Second

// identify returns the user of the process at the other end, as the kernel knows
// it.
func identify(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(cerr, err); err != nil {
		return 0, os.NewSyscallError("getsockopt", err)
	}
	return cred.Uid, nil
}

// admit refuses a process of another user. The superuser is let in: nothing can
// be kept from it.
func admit(c *net.UnixConn, identify func(*net.UnixConn) (uint32, error)) error {
	uid, err := identify(c)
	if err != nil {
		return err
	}
	if own := uint32(os.Geteuid()); uid != own && uid != 0 {
		return fmt.Errorf("it runs as user %d, this process as user %d", uid, own)
	}
	return nil
}

// send sends a message, with duplicates of descriptors.
func (p *peer) send(m *message, fds ...int) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.conn.SetWriteDeadline(p.now().Add(patience)); err != nil {
		return err
	}
	_, _, err = p.conn.WriteMsgUnix(data, rights, nil)
	return err
}

// receive returns the next message and its descriptors, which are the caller's.
// wait bounds it; 0 is for ever.
func (p *peer) receive(wait time.Duration) (*message, []int, error) {
	var deadline time.Time
	if wait > 0 {
		deadline = p.now().Add(wait)
	}
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return nil, nil, err
	}
	data := make([]byte, maxMessage)
	control := make([]byte, unix.CmsgSpace(4*maxBatch))
	n, cn, flags, _, err := p.conn.ReadMsgUnix(data, control)
	fds, rerr := rights(control[:cn])
	switch {
	case err != nil:
	case rerr != nil:
		err = rerr
	case flags&unix.MSG_CTRUNC != 0:
		err = errors.New("descriptors were lost: too many at once, or this process may open no more")
	case flags&unix.MSG_TRUNC != 0:
		err = fmt.Errorf("a message of more than %d bytes", maxMessage)
	case n == 0: // the end, or a packet without bytes
		err = io.EOF
	}
	var m *message
	if err == nil {
		m, err = decode(data[:n])
	}
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	return m, fds, nil
}

// rights returns the descriptors that came with a message.
func rights(control []byte) ([]int, error) {
	parts, err := unix.ParseSocketControlMessage(control)
	var fds []int
	for _, part := range parts {
		if part.Header.Level != unix.SOL_SOCKET || part.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		got, rerr := unix.ParseUnixRights(&part)
		fds = append(fds, got...)
		err = errors.Join(err, rerr)
	}
	return fds, err
}

// bye ends the connection, and says why if the other one still listens.
func (p *peer) bye(reason string) {
	_ = p.send(&message{Type: typeBye, Reason: reason})
	p.conn.Close()
}
