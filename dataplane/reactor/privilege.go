//go:build linux

package reactor

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// bindService is the bit of CAP_NET_BIND_SERVICE.
const bindService = uint32(1) << unix.CAP_NET_BIND_SERVICE

// privileged calls bind. When it is refused for want of rights (EACCES), and the
// process is permitted to bind ports below 1024 but does not do so by default,
// it calls bind once more with that right in effect. It is taken back at once.
func privileged(bind func() error) (err error) {
	if err = bind(); !errors.Is(err, unix.EACCES) {
		return err
	}
	// Capabilities belong to threads.
	runtime.LockOSThread()
	release := runtime.UnlockOSThread
	defer func() { release() }()
	before, errno := capabilities()
	if errno != nil || before[0].Permitted&bindService == 0 || before[0].Effective&bindService != 0 {
		return err
	}
	raised := before
	raised[0].Effective |= bindService
	if setCapabilities(raised) != nil {
		return err
	}
	err = bind()
	if setCapabilities(before) != nil {
		release = func() {} // a thread that stays locked ends with its goroutine, and its rights with it
	}
	return err
}

// capabilities returns the calling thread's, the lower 32 in the first element.
func capabilities() (sets [2]unix.CapUserData, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err = unix.Capget(&header, &sets[0])
	return sets, err
}

func setCapabilities(sets [2]unix.CapUserData) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&header, &sets[0])
}
