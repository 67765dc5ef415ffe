//go:build !amd64 || race

package metrics

import "sync/atomic"

// addOwned adds n to v, whose only writer is the caller.
func addOwned(v *atomic.Uint64, n uint64) { v.Store(v.Load() + n) }
