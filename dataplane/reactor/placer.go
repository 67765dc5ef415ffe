//go:build linux

package reactor

import (
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// placer chooses the loops of the connections that one thread accepts, and
// hands them over in batches: one wake-up per loop and batch.
type placer struct {
	placement Placement
	loops     []*Loop
	next      int
	batches   [][]accepted // by index in loops
}

func newPlacer(placement Placement, loops []*Loop) *placer {
	return &placer{placement: placement, loops: loops, batches: make([][]accepted, len(loops))}
}

// put assigns a connection to a loop.
func (p *placer) put(a accepted) {
	i := p.next
	if p.placement == LeastLoaded {
		// From next on, so that equals take turns.
		for k := range p.loops {
			if j := (p.next + k) % len(p.loops); p.loops[j].Load() < p.loops[i].Load() {
				i = j
			}
		}
	}
	p.next = (i + 1) % len(p.loops)
	p.loops[i].load.Add(1)
	p.batches[i] = append(p.batches[i], a)
}

// handOver gives each loop its batch. It is called on the loop self.
func (p *placer) handOver(self *Loop) {
	for i, batch := range p.batches {
		switch {
		case len(batch) == 0:
			continue
		case p.loops[i] == self:
			for _, a := range batch {
				self.admit(a)
				self.settleAll()
			}
		default:
			p.loops[i].takeOver(batch)
		}
		clear(batch)
		p.batches[i] = batch[:0]
	}
}

// takeOver gives the loop connections. Any thread may call it.
func (l *Loop) takeOver(batch []accepted) {
	if !l.inbox.deliver(batch) {
		for _, a := range batch {
			l.load.Add(-1)
			closeFD(a.fd)
		}
	}
}

// admit begins a connection that was accepted for this loop.
func (l *Loop) admit(a accepted) {
	c := &Conn{loop: l, fd: a.fd, remote: a.remote, flags: flagAccepted}
	l.register(c)
	count(&l.stats.accepted)
	defer l.guard(c)
	l.clock.read()
	if c.tellPoller(); c.flags&flagDone != 0 {
		l.log.Warn("connection refused", zap.Stringer("remote", a.remote), zap.Error(c.err))
		return
	}
	c.handler = a.listener.handler(l, c)
	if c.handler == nil {
		c.Close()
	}
}

// affinity returns the CPUs that the process may use.
func affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(unix.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
