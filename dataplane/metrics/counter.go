package metrics

import "sync/atomic"

// counter is a number with one writer, the loop that owns it, and any number of
// readers. It wraps at 2^64; a gauge is a counter that is also added negative
// numbers and is read as signed.
type counter struct{ v atomic.Uint64 }

// add adds n. Only the owner calls it.
func (c *counter) add(n uint64) { addOwned(&c.v, n) }

// inc adds one.
func (c *counter) inc() { addOwned(&c.v, 1) }

// shift adds n, which may be negative.
func (c *counter) shift(n int) { addOwned(&c.v, uint64(n)) }

// value returns the count; any goroutine may ask.
func (c *counter) value() float64 { return float64(c.v.Load()) }

// level returns the count of a gauge; any goroutine may ask.
func (c *counter) level() float64 { return float64(int64(c.v.Load())) }
