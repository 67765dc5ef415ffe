//go:build linux && race

package reactor

import "golang.org/x/sys/unix"

// check panics when it is called off the loop's thread. Builds with the race
// detector only.
func (l *Loop) check() {
	if l.tid != 0 && l.tid != unix.Gettid() {
		panic("reactor: a method that belongs on the loop was called elsewhere")
	}
}
