// Package holdoff turns a stream of events into few signals: the first event
// counts at once, a storm counts at a bounded rate, what is still being written
// counts when it pauses, and no event waits for long. The loop in controllers and
// the watcher of files use it.
package holdoff

import (
	"context"
	"time"
)

// Event says how an event counts.
type Event uint8

// The events.
const (
	// Now is a change that is complete: it is signalled at once, or a Pause after
	// the last signal.
	Now Event = iota
	// Settle is a change that may go on, such as a file that is being written: it
	// is signalled after a pause.
	Settle
)

// Options are the two times. Zero means the default.
type Options struct {
	// Pause is the least time between two signals, and how long it must be quiet
	// after a Settle; default 10 ms.
	Pause time.Duration
	// Most is how long a Settle waits at most; default 100 ms.
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
	// rest runs for a Pause after a signal; quiet from the last event, while a
	// Settle waits.
	rest, quiet, most := time.NewTimer(o.Pause), time.NewTimer(o.Pause), time.NewTimer(o.Most)
	for _, t := range []*time.Timer{rest, quiet, most} {
		t.Stop()
	}
	resting, waiting, settling := false, false, false
	signal := func() {
		select {
		case out <- struct{}{}:
		default:
		}
		resting, waiting, settling = true, false, false
		rest.Reset(o.Pause)
		quiet.Stop()
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
			waiting = true
			if e == Settle && !settling {
				settling = true
				most.Reset(o.Most)
			}
			if settling {
				quiet.Reset(o.Pause)
			} else if !resting {
				signal()
			}
		case <-rest.C:
			resting = false
			if waiting && !settling {
				signal()
			}
		case <-quiet.C:
			signal()
		case <-most.C:
			signal()
		}
	}
}
