package upstream

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// How often names are looked up again, after a success and after a failure, and
// how long one look-up may take. The system's resolver does not tell a record's
// time to live.
const (
	resolveEvery   = 30 * time.Second
	resolveRetry   = 2 * time.Second
	resolveTimeout = 5 * time.Second
)

// resolver looks up the names of endpoints, in a goroutine of its own. A name
// that can't be resolved keeps its last addresses.
type resolver struct {
	look    func(ctx context.Context, name string) ([]netip.Addr, error)
	changed func(address string, err error)
	done    sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	watched map[string]context.CancelFunc // by "name:port"
	found   map[string][]netip.AddrPort
}

func newResolver(look func(context.Context, string) ([]netip.Addr, error), changed func(string, error)) *resolver {
	if look == nil {
		look = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	return &resolver{look: look, changed: changed, watched: map[string]context.CancelFunc{}, found: map[string][]netip.AddrPort{}}
}

// lookup returns the last known addresses of "name:port"; it never blocks.
func (r *resolver) lookup(address string) []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found[address]
}

// watch makes the set of watched addresses the given one.
func (r *resolver) watch(addresses []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a, stop := range r.watched {
		if !slices.Contains(addresses, a) {
			stop()
			delete(r.watched, a)
			delete(r.found, a)
		}
	}
	for _, a := range addresses {
		if r.watched[a] != nil || r.closed {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		r.watched[a] = stop
		r.done.Go(func() { r.follow(ctx, a) })
	}
}

func (r *resolver) close() {
	r.mu.Lock()
	r.closed = true
	for _, stop := range r.watched {
		stop()
	}
	r.mu.Unlock()
	r.done.Wait()
}

// follow keeps one address resolved until ctx ends.
func (r *resolver) follow(ctx context.Context, address string) {
	host, portText, err := net.SplitHostPort(address)
	port, perr := strconv.ParseUint(portText, 10, 16)
	if err != nil || perr != nil {
		return // ir.Validate refuses such an address
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		lctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		ips, err := r.look(lctx, host)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.changed(address, err)
			timer.Reset(resolveRetry)
			continue
		}
		addrs := make([]netip.AddrPort, 0, len(ips))
		for _, ip := range ips {
			addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
		}
		slices.SortFunc(addrs, netip.AddrPort.Compare)
		r.mu.Lock()
		same := slices.Equal(r.found[address], addrs)
		if ctx.Err() == nil {
			r.found[address] = addrs
		}
		r.mu.Unlock()
		if !same {
			r.changed(address, nil)
		}
		timer.Reset(resolveEvery)
	}
}
