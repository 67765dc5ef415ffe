package pressure

import "testing"

func TestProcess(t *testing.T) {
	p := NewProcess(Usage{Connections: 1000, Memory: 1 << 30})
	for i, step := range []struct {
		conns  int64
		memory float64 // part of the limit
		want   Cause
	}{
		{0, 0, NoCause},
		{999, 0.79, NoCause},
		{1000, 0, ByConnections},
		{971, 0, ByConnections}, // not open before it fell by 3 %
		{969, 0, NoCause},
		{999, 0, NoCause},
		{5000, 0.81, ByMemory},
		{0, 0.71, ByMemory},
		{5000, 0.69, ByConnections},
		{980, 0.75, ByConnections}, // memory is below where it closes
		{900, 0.75, NoCause},
	} {
		if got := p.Decide(Usage{step.conns, int64(step.memory * (1 << 30))}); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	free := NewProcess(Usage{})
	if got := free.Decide(Usage{1 << 40, 1 << 60}); got != NoCause {
		t.Errorf("without limits: %v", got)
	}
	one := NewProcess(Usage{Connections: 1})
	for i, want := range []Cause{NoCause, ByConnections, NoCause} {
		if got := one.Decide(Usage{Connections: int64(i % 2)}); got != want {
			t.Errorf("a limit of one, step %d: %v, want %v", i, got, want)
		}
	}
	for c, name := range map[Cause]string{NoCause: "none", ByConnections: "connections", ByMemory: "memory"} {
		if c.String() != name {
			t.Errorf("%d is %q", c, c)
		}
	}
}
