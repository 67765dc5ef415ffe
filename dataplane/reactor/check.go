//go:build linux && !race

package reactor

// check panics in builds with the race detector when it is called off the
// loop's thread.
func (l *Loop) check() {}
