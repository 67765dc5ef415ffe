package upstream

// warm opens unused connections to endpoints that joined, so that the first
// requests need not wait for one. A connection that does not come about is not
// tried again: the first request will.
func (sh *Shard) warm(joined []*Endpoint, n int) {
	st := sh.cluster.state.Load()
	for _, e := range joined {
		if e.removed.Load() || st.retired {
			continue
		}
		for range n {
			c := newConn(sh, e)
			c.warming = true
			c.timer.Schedule(st.pool.ConnectTimeout)
			t, err := sh.loop.Dial(e.addr, c)
			if err != nil {
				c.state = connClosed
				c.timer.Cancel()
				sh.metrics.ConnectFailed()
				return
			}
			c.transport = t
		}
	}
}

// warmed puts a connection that was opened ahead of need into the pool.
func (c *Conn) warmed() {
	c.warming = false
	c.shard.metrics.Connected()
	if c.endpoint.removed.Load() || c.shard.cluster.state.Load().retired {
		c.shut()
		return
	}
	c.park()
}
