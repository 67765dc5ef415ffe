//go:build linux

package reactor

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/panjf2000/gnet/v2/pkg/netpoll"
	"golang.org/x/sys/unix"
)

// eventBatch is how many events are taken from the poller in one turn.
const eventBatch = 256

// descriptorOf returns the epoll descriptor of a poller, which gnet does not
// export.
func descriptorOf(p *netpoll.Poller) (int, error) {
	fd := reflect.ValueOf(p).Elem().FieldByName("fd")
	if !fd.IsValid() || !fd.CanInt() {
		return -1, errors.New("gnet's Poller does not have its descriptor where this program looks for it: build it with the version of go.mod")
	}
	return int(fd.Int()), nil
}

// poll takes events from the poller and serves them until the loop is stopped. It
// stands in the place of Poller.Polling, which looks twice before it waits, and in
// between yields to Go's scheduler; with a locked thread that is a hand-over to
// another thread and back, for each event of a loop that has little to do.
func (l *Loop) poll() error {
	events := make([]unix.EpollEvent, eventBatch)
	for !l.stopping {
		n, err := unix.EpollWait(l.epoll, events, -1)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll_wait: %w", err)
		}
		for i := range max(n, 0) {
			if l.onEvent(int(events[i].Fd), events[i].Events); l.stopping {
				return nil
			}
		}
	}
	return nil
}
