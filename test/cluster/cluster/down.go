package cluster

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// endTimeout is how long killed processes and their cgroups may take to go.
const endTimeout = 10 * time.Second

// Down ends the cluster of the state directory dir, or, if dir is empty, the
// one that is up on this machine, and removes all but its logs. It reports
// whether there was one. It finds what a crashed cluster has left, too.
func Down(dir string) (found bool, err error) {
	l, err := newLayout(resolveDir(dir))
	if err != nil {
		return false, err
	}
	if exists(l.dir) {
		if err := l.prepare(); err != nil {
			return false, err
		}
		operation, operateErr := operate(l)
		if operateErr != nil {
			return false, operateErr
		}
		defer func() { err = errors.Join(err, operation.close()) }()
	}
	left, err := marked(l.dir)
	if err != nil {
		return false, err
	}
	found = exists(l.state()) || len(left) > 0
	return found, end(l, nil)
}

// Down ends the cluster, see the function [Down].
func (c *Cluster) Down() error {
	_, err := Down(c.layout.dir)
	return err
}

// end ends all that was started for a state directory and removes what was
// made. What it could not do is in its error, and doing it again is safe. The
// caller passes the machine's lock if it has it.
func end(l layout, machine *lock) (err error) {
	s, err := readState(l.state())
	if err != nil {
		// There is none, or it can't be read: the mark finds the processes all the same.
		s = &state{}
	}
	if err := endProcesses(l, s); err != nil {
		return err
	}
	if machine == nil {
		// With the processes gone the lock is free, unless another cluster of
		// another directory is up: then the link and the cgroups are its.
		machine, err = acquire(machineLock)
		if err != nil {
			if held := new(HeldError); !errors.As(err, &held) || held.Holder.Dir == l.dir {
				return err
			}
			machine = nil
		} else {
			defer func() { err = errors.Join(err, machine.close()) }()
		}
	}
	if machine != nil {
		if os.Geteuid() == 0 {
			if err := errors.Join(partNetwork(), removeCgroups(endTimeout)); err != nil {
				return err
			}
		}
		if err := machine.clear(); err != nil {
			return err
		}
	}
	if err := removePlaces(s.Made); err != nil {
		return err
	}
	return removeFiles(l)
}

// endProcesses kills the recorded processes and the marked ones. Killing pid 1
// of the node kills everything in it. Nothing is asked to end by itself: the
// data is thrown away, and the API server would wait for its watches.
func endProcesses(l layout, s *state) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	var doomed []process
	if s.Boot == boot {
		doomed = s.Processes
	}
	for range 10 {
		if err := killAll(doomed, endTimeout); err != nil {
			return err
		}
		// Again until there are none: one may have started another meanwhile.
		if doomed, err = marked(l.dir); err != nil {
			return err
		}
		if len(doomed) == 0 {
			return nil
		}
	}
	return fmt.Errorf("processes of %s start faster than they can be ended", l.dir)
}

// removeFiles removes what is in a state directory, but for the logs and the
// lock. cluster.json goes last: while it is there, down has more to do.
func removeFiles(l layout) error {
	mounts, err := mountsBelow(l.run())
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		// Removing would go through them into what is not ours.
		return fmt.Errorf("these are still mounted in the state directory; unmount them: %q", mounts)
	}
	return errors.Join(
		os.RemoveAll(l.run()),
		removeFile(l.kubeconfig()),
		removeFile(l.state()+".unfinished"),
		removeFile(l.state()),
	)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !isAbsent(err) {
		return err
	}
	return nil
}
