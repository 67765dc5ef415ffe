package queueing

import "fmt"

// Memory are the constants of the memory model, in bytes (paper 3.5).
type Memory struct {
	Base    int64 // M_base: the process without connections
	Thread  int64 // M_thread: a thread and its stack
	Request int64 // M_req: the context of a connection or request
}

// Sync returns the bytes of n active connections with a thread for each.
// Source: paper, Eq. (11).
func (m Memory) Sync(n int) (int64, error) { return m.sum(n, m.Thread, 0) }

// Async returns the bytes of n active connections on c event loops.
// Source: paper, Eq. (12).
func (m Memory) Async(n, c int) (int64, error) { return m.sum(n, m.Request, c) }

// sum returns Base + n*each + c*Thread.
func (m Memory) sum(n int, each int64, c int) (int64, error) {
	const limit = 1 << 40 // of every factor's product: no overflow of the sum
	ok := func(n int, v int64) bool { return n >= 0 && v >= 0 && (v == 0 || int64(n) <= (limit<<20)/v) }
	if m.Base < 0 || m.Base > limit<<20 || !ok(n, each) || !ok(c, m.Thread) {
		return 0, fmt.Errorf("%w: memory %+v, n %d, c %d", ErrDomain, m, n, c)
	}
	return m.Base + int64(n)*each + int64(c)*m.Thread, nil
}
