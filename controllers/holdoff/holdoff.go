// Package holdoff turns a stream of events into few signals: the first event
// counts at once, a storm counts when it pauses, and no event waits for long. The
// loop in controllers and the watcher of files use it.
package holdoff

import (
	"context"
	"time"
)

// Event says how an event counts.
type Event uint8

// The events.
const (
	// Now is a change that is complete: it is signalled at once unless a signal
	// was just given.
	Now Event = iota
	// Settle is a change that may go on, such as a file that is being written: it
	// is signalled after a pause.
	Settle
)

// Options are the two times. Zero means the default.
type Options struct {
	// Pause is how long it must be quiet before a storm is signalled; default
	// 10 ms.
	Pause time.Duration
	// Most is how long an event waits at most; default 100 ms.
	Most time.Duration
}

// Run signals on the channel that it returns until ctx ends or events is closed;
// then it closes the channel. A signal that nobody has taken yet stands for the
// next one too.
func Run(ctx context.Context, events <-chan Event, o Options) <-chan struct{} {
	if o.Pause == 0 {
		o.Pause = 10 * time.Millisecond
	}
	if o.Most == 0 {
		o.Most = 100 * time.Millisecond
	}
	out := make(chan struct{}, 1)
	go run(ctx, events, o, out)
	return out
}

func run(ctx context.Context, events <-chan Event, o Options, out chan<- struct{}) {
	defer close(out)
	pause, most := time.NewTimer(o.Pause), time.NewTimer(o.Most)
	pause.Stop()
	most.Stop()
	// calm: no signal was given in the last Pause. waiting: an event has not been
	// signalled.
	calm, waiting := true, false
	signal := func() {
		select {
		case out <- struct{}{}:
		default:
		}
		waiting = false
		most.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				if waiting {
					signal()
				}
				return
			}
			if calm && !waiting && e == Now {
				signal()
			} else if !waiting {
				waiting = true
				most.Reset(o.Most)
			}
			calm = false
			pause.Reset(o.Pause)
		case <-pause.C:
			if waiting {
				signal()
				pause.Reset(o.Pause)
			} else {
				calm = true
			}
		case <-most.C:
			if waiting {
				signal()
				pause.Reset(o.Pause)
			}
		}
	}
}
