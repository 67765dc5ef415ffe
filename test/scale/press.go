//go:build linux

package main

import (
	"sync"
	"time"
)

// pressLines is how many connections the load has.
const pressLines = 8

// press asks for routes in turn, at a steady rate over several connections, until
// the function that it returns is called; that returns how many requests there
// were, and what was wrong. check asks once and says what was wrong, if it was.
func (l *lab) press(routes []string, rate int, check func(i int, ask func() (answer, error)) string) (stop func() (requests int, wrong []string)) {
	var (
		mu       sync.Mutex
		running  sync.WaitGroup
		requests int
		wrong    []string
	)
	done := make(chan struct{})
	pause := time.Second * pressLines / time.Duration(rate)
	for n := range pressLines {
		running.Go(func() {
			c := line{gateway: l.gateway}
			defer c.close()
			due := time.NewTicker(pause)
			defer due.Stop()
			for i := n; ; i++ {
				select {
				case <-done:
					return
				case <-due.C:
				}
				i %= len(routes)
				name := routes[i]
				why := check(i, func() (answer, error) { return c.get(hostname(name), askedPath) })
				mu.Lock()
				requests++
				if why != "" {
					wrong = append(wrong, name+": "+why)
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []string) {
		close(done)
		running.Wait()
		return requests, wrong
	}
}
