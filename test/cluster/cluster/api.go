package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// client asks the cluster's programs how they are.
type client struct {
	http *http.Client
	base string
}

// newAPIClient returns a client of the API server with the administrator's
// certificate.
func newAPIClient(l layout, mode Mode) (*client, error) {
	authority, err := os.ReadFile(l.certificate("ca"))
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", l.certificate("ca"))
	}
	pair, err := tls.LoadX509KeyPair(l.certificate("admin"), l.key("admin"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	return &client{
		base: server(mode),
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
			TLSHandshakeTimeout: probeTimeout,
			IdleConnTimeout:     10 * time.Second,
		}},
	}, nil
}

// newHealthClient returns a client of the health port of a program on its own
// loopback address. dial makes the connections.
func newHealthClient(base string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *client {
	return &client{
		base: base,
		http: &http.Client{Transport: &http.Transport{
			DialContext:       dial,
			DisableKeepAlives: true,
			// The programs make a certificate for themselves, and nothing but "ok" is read.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}},
	}
}

// get asks for a path. The answer must be a 200; its JSON goes to into, unless
// that is nil.
func (c *client) get(ctx context.Context, path string, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// close closes idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// ready returns a probe of the API server.
func (c *client) ready(ctx context.Context) error { return c.get(ctx, "/readyz", nil) }

// nodeReady returns nil when the node reports itself ready.
func (c *client) nodeReady(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.get(ctx, "/api/v1/nodes/"+nodeName, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" {
			continue
		}
		if condition.Status == "True" {
			return nil
		}
		return fmt.Errorf("node %s is not ready: %s", nodeName, condition.Message)
	}
	return fmt.Errorf("node %s has not said whether it is ready", nodeName)
}
