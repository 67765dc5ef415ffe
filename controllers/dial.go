package controllers

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	dialTimeout   = 5 * time.Second
	dialKeepAlive = 30 * time.Second
	// dialAgain is how often an API server that was there before is tried.
	dialAgain = 500 * time.Millisecond
	// maxPatient bounds the connections that wait for it: net/http goes on to dial
	// for requests that were given up.
	maxPatient = 64
)

// dialer connects to the API server. While one that was there before is away, a
// connection takes as long as that, and does not fail: client-go's watches back off
// when they fail, for up to a minute, and would as long not notice that it is back.
// Of those that wait one at a time tries: many nodes wait for one API server.
type dialer struct {
	log     *zap.Logger
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	again   time.Duration

	reached atomic.Bool   // it was there before
	away    atomic.Bool   // it is not now
	waiting atomic.Int64  // connections that wait for it
	turn    chan struct{} // who has the one token in it may try
}

func newDialer(log *zap.Logger) *dialer {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialKeepAlive}
	return dialerOf(log, d.DialContext, dialAgain)
}

func dialerOf(log *zap.Logger, connect func(context.Context, string, string) (net.Conn, error), again time.Duration) *dialer {
	d := &dialer{log: log, connect: connect, again: again, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	defer d.waiting.Add(-1)
	patient := d.waiting.Add(1) <= maxPatient
	for mine := false; ; mine = true {
		conn, err := d.connect(ctx, network, address)
		if mine {
			d.pass(err)
		}
		if err == nil {
			d.reached.Store(true)
			if d.away.Swap(false) {
				d.log.Info("the API server is back")
			}
			return conn, nil
		}
		if !patient || !d.reached.Load() || ctx.Err() != nil {
			return nil, err
		}
		if !d.away.Swap(true) {
			d.log.Warn("the API server is out of reach; what is served is served on", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-d.turn:
		}
	}
}

// pass gives the turn to the next one that waits: at once when there was a
// connection, else after a pause.
func (d *dialer) pass(err error) {
	if err == nil {
		d.turn <- struct{}{}
		return
	}
	time.AfterFunc(d.again, func() { d.turn <- struct{}{} })
}
