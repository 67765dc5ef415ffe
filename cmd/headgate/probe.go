package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func probeCmd() *cobra.Command {
	var socket string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "probe ready|live --socket PATH",
		Short: "Ask a running process whether it is ready or alive",
		Long: `Ask a running process, by the Unix socket of its --admin-socket, whether it is ready
or alive. The exit code is 0 when it is; else it is 1, and a sentence says why. For the
exec probes of a pod on the host's network: while two processes share the port of
--admin-address, a request to the port may come to either.`,
		Example:   "  headgate probe ready --socket /run/headgate-pod/admin.sock",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"ready", "live"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if socket == "" {
				return errors.New("--socket: name the path that the process was given as --admin-socket")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return probe(ctx, socket, map[string]string{"ready": "/readyz", "live": "/healthz"}[args[0]])
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the process's --admin-socket")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long the process may take to answer")
	return cmd
}

// probe asks for a page and returns why its answer is not 200.
func probe(ctx context.Context, socket, page string) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+page, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("no answer on %s: %w", socket, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("no answer on %s: %w", socket, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", strings.TrimSpace(string(text)))
	}
	return nil
}
