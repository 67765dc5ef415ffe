package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lock whose record a test writes.
type lock struct {
	resourcelock.Interface
	holder  string
	err     error // of Get
	failure error // of Update
	written []resourcelock.LeaderElectionRecord
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder, LeaderTransitions: 7, LeaseDurationSeconds: 15}, nil, l.err
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.written = append(l.written, r)
	return l.failure
}

// Only the holder releases the lock, and only while it can be seen that it is.
func TestRelease(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		lock  lock
		err   error
		wrote bool
	}{
		"ours":      {lock{holder: "me"}, nil, true},
		"another's": {lock{holder: "other"}, nil, false},
		"nobody's":  {lock{}, nil, false},
		"unknown":   {lock{holder: "me", err: boom}, boom, false},
		"changed":   {lock{holder: "me", failure: boom}, boom, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := release(t.Context(), &c.lock); !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			var want []resourcelock.LeaderElectionRecord
			if c.wrote {
				want = []resourcelock.LeaderElectionRecord{{LeaderTransitions: 7, LeaseDurationSeconds: 1}}
			}
			if !slices.Equal(c.lock.written, want) {
				t.Errorf("written are %+v, want %+v", c.lock.written, want)
			}
		})
	}
}
