package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// echoServer is the built-in backend of the samples: it answers every request
// with what it received.
type echoServer struct {
	server *http.Server
	ln     net.Listener
}

// echoReply is the body of an answer.
type echoReply struct {
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	Query   string      `json:"query,omitempty"`
	Headers http.Header `json:"headers"`
	Body    int64       `json:"bodyBytes"`
}

// startEcho listens at address, "ip:port".
func startEcho(address string, log *zap.Logger) (*echoServer, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--with-echo: %w", err)
	}
	e := &echoServer{ln: ln, server: &http.Server{
		Handler:           http.HandlerFunc(echo),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          zap.NewStdLog(log),
	}}
	go func() {
		if err := e.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the echo backend ended", zap.Error(err))
		}
	}()
	return e, nil
}

func (e *echoServer) close(ctx context.Context) error { return e.server.Shutdown(ctx) }

func echo(w http.ResponseWriter, r *http.Request) {
	n := int64(0)
	buf := make([]byte, 16<<10)
	for {
		k, err := r.Body.Read(buf)
		n += int64(k)
		if err != nil {
			break
		}
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// An error means that the client went away: there is nobody to tell.
	_ = enc.Encode(echoReply{
		Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Headers: r.Header, Body: n,
	})
}
