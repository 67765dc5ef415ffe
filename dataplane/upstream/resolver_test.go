package upstream

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/dataplane/ir"
)

func TestNamesAreResolvedAndFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[[]netip.Addr]
		var failed atomic.Int64
		answer.Store(&[]netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.8")})
		r := newRig(t, 1, Options{
			Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
				if name != "db.example" {
					t.Errorf("asked for %q", name)
				}
				if a := answer.Load(); a != nil {
					return *a, nil
				}
				return nil, errors.New("no such host")
			},
			OnResolveError: func(string, string, error) { failed.Add(1) },
		})
		s := spec(ir.Pool{}, 0, "db.example:5432")
		r.Update([]*ir.Cluster{s})
		c := r.Cluster(s.Name)
		synctest.Wait()
		if got := c.Stats().Endpoints; got != 2 {
			t.Fatalf("%d endpoints after the first look-up", got)
		}
		answer.Store(nil)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if failed.Load() == 0 || c.Stats().Endpoints != 2 {
			t.Fatalf("after a failed look-up: %d failures heard, %d endpoints", failed.Load(), c.Stats().Endpoints)
		}
		answer.Store(&[]netip.Addr{netip.MustParseAddr("10.0.0.7")})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.open(c, 0, Try{})
		if got := r.loops[0].last().addr.String(); got != "10.0.0.7:5432" || c.Stats().Endpoints != 1 {
			t.Fatalf("dialled %s, %d endpoints", got, c.Stats().Endpoints)
		}
		r.Retire(nil)
		r.Close()
	})
}
