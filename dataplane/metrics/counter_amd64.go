//go:build amd64 && !race

package metrics

import "sync/atomic"

// addOwned adds n to v, whose only writer is the caller. sync/atomic has only
// sequentially consistent stores, which are XCHG on amd64: as dear as a LOCK
// prefix, and more is not needed here. A plain ADD to an aligned word is seen
// whole by every reader.
//
//go:noescape
func addOwned(v *atomic.Uint64, n uint64)
