package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StopAPIServer ends the API server and nothing else, at once, as a crash
// would: connections break, watches end. etcd and so all objects stay. It
// reports whether the API server was running.
func (c *Cluster) StopAPIServer() (stopped bool, err error) {
	operation, err := operate(c.layout)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, operation.close()) }()
	p, err := c.apiServer()
	if err != nil {
		return false, err
	}
	if !p.alive() {
		return false, nil
	}
	return true, killAll([]process{p}, endTimeout)
}

// StartAPIServer starts the API server again, as it was, and returns when it
// is ready. It reports whether it had to: it does nothing to one that runs.
func (c *Cluster) StartAPIServer(ctx context.Context) (started bool, err error) {
	operation, err := operate(c.layout)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, operation.close()) }()
	p, err := c.apiServer()
	if err != nil {
		return false, err
	}
	if p.alive() {
		return false, nil
	}
	if c.state.Mode == Node {
		if _, err := c.liveNode(); err != nil {
			return false, err
		}
	}
	api, err := newAPIClient(c.layout, c.state.Mode)
	if err != nil {
		return false, err
	}
	defer api.close()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	d, err := c.launch(program{name: p.Name, args: p.Args}, nil, nil)
	if err != nil {
		return false, err
	}
	return true, d.await(limited, "the API server", api.ready)
}

// apiServer returns the API server's process as it was last recorded, by
// whichever process did so.
func (c *Cluster) apiServer() (process, error) {
	s, err := readState(c.layout.state())
	if isAbsent(err) {
		return process{}, fmt.Errorf("%w in %s", ErrNotUp, c.layout.dir)
	}
	if err != nil {
		return process{}, err
	}
	c.state = s
	p, ok := s.find(nameAPIServer)
	if !ok {
		return process{}, fmt.Errorf("%w in %s: its API server was never started", ErrNotUp, c.layout.dir)
	}
	return p, nil
}
