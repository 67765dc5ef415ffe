package cluster

import (
	"errors"
	"testing"
)

func TestAPIServerStops(t *testing.T) {
	c := newCluster(t)
	if _, err := c.StopAPIServer(); !errors.Is(err, ErrNotUp) {
		t.Errorf("before anything was started: %v", err)
	}
	etcd, err := c.launch(shell("etcd", "exec sleep 60"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StopAPIServer(); !errors.Is(err, ErrNotUp) {
		t.Errorf("before the API server was started: %v", err)
	}
	apiServer, err := c.launch(shell("kube-apiserver", "exec sleep 60"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if started, err := c.StartAPIServer(t.Context()); started || err != nil {
		t.Errorf("starting one that runs: %v, %v", started, err)
	}
	if stopped, err := c.StopAPIServer(); !stopped || err != nil {
		t.Errorf("stopping it: %v, %v", stopped, err)
	}
	if apiServer.process.alive() || !etcd.process.alive() {
		t.Errorf("API server alive: %v, etcd alive: %v", apiServer.process.alive(), etcd.process.alive())
	}
	if stopped, err := c.StopAPIServer(); stopped || err != nil {
		t.Errorf("stopping it again: %v, %v", stopped, err)
	}
}
