package controllers

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// release gives the lock up if this process holds it, so that another one need
// not wait until the lease has run out. client-go's elector could do it, but does it
// after a lost lease, too: by what it remembers, though somebody else may hold the
// lock by then, and before it ends the term, though that is over.
func release(ctx context.Context, lock resourcelock.Interface) error {
	record, _, err := lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	if record.HolderIdentity != lock.Identity() {
		return nil
	}
	free := *record
	free.HolderIdentity, free.LeaseDurationSeconds = "", 1
	// It fails when the lease is not the one that was read any more.
	if err := lock.Update(ctx, free); err != nil {
		return fmt.Errorf("release the lease: %w", err)
	}
	return nil
}
