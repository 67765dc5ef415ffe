package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane/admin"
)

// metricsServer serves the metrics, and nothing else, on an address of its own.
type metricsServer struct {
	server *admin.Server
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// metricsRetry is how long a taken address is left alone.
const metricsRetry = time.Second

// startMetrics listens on an address. One that is taken is tried again until it is
// free: the process before this one may still have it.
func startMetrics(address string, metrics prometheus.Gatherer, log *zap.Logger) (*metricsServer, error) {
	server, err := admin.New(admin.Options{Metrics: metrics, MetricsOnly: true, Logger: log})
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", address)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--metrics-address: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &metricsServer{server: server, cancel: cancel}
	m.ended.Go(func() {
		if ln == nil {
			log.Warn("the metrics' address is taken; it is tried until it is free", zap.Error(err))
			if ln = listenLater(ctx, address); ln == nil {
				return
			}
		}
		log.Info("metrics listening", zap.Stringer("address", ln.Addr()))
		if err := server.Serve(ln); err != nil {
			log.Error("the metrics server ended", zap.Error(err))
		}
	})
	return m, nil
}

// listenLater listens on an address as soon as that is possible; it returns nil
// when ctx ends first.
func listenLater(ctx context.Context, address string) net.Listener {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(metricsRetry):
		}
		if ln, err := net.Listen("tcp", address); err == nil {
			return ln
		}
	}
}

// close gives the address back and waits for the answers under way.
func (m *metricsServer) close(ctx context.Context) error {
	m.cancel()
	err := m.server.Close(ctx)
	m.ended.Wait()
	return err
}
