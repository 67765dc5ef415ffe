package metrics

import "sync/atomic"

// byLoop has a part for each loop. A loop makes its own when it first needs it:
// most routes and clusters of a large configuration are quiet, and parts are
// large. Any goroutine reads those that there are.
type byLoop[T any] []atomic.Pointer[T]

// own returns the part of loop i. Only that loop calls it.
func (b byLoop[T]) own(i int) *T {
	part := b[i].Load()
	if part == nil {
		part = new(T)
		b[i].Store(part)
	}
	return part
}

// all passes the parts that there are to yield.
func (b byLoop[T]) all(yield func(*T) bool) {
	for i := range b {
		if part := b[i].Load(); part != nil && !yield(part) {
			return
		}
	}
}
