package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/handover"
	"github.com/headgate/headgate/dataplane/metrics"
)

func handoverCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "handover",
		Short: "Prepare the directory in which listening sockets are handed over",
	}
	cmd.AddCommand(prepareCmd())
	return cmd
}

func prepareCmd() *cobra.Command {
	var dir, owner string
	cmd := &cobra.Command{
		Use:   "prepare --dir DIR --owner UID:GID",
		Short: "Make a directory for --handover-dir",
		Long: `Make a directory for --handover-dir: it is created if it is missing, and belongs to
the owner alone. It needs the superuser with CAP_CHOWN and nothing else, for an
init container. A directory that is prepared is left as it is; a symbolic link, a
directory of somebody else, and one with other files in it are refused.`,
		Example: "  headgate handover prepare --dir /run/headgate --owner 65532:65532",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			uid, gid, err := parseOwner(owner)
			if err != nil {
				return err
			}
			if dir == "" {
				return errors.New("--dir: name the directory, such as /run/headgate")
			}
			return handover.Prepare(strings.TrimRight(dir, "/"), uid, gid)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory; its parent must exist")
	cmd.Flags().StringVar(&owner, "owner", "", "the user and group who will run headgate, as numbers, such as 65532:65532")
	return cmd
}

func parseOwner(s string) (uid, gid int, err error) {
	u, g, ok := strings.Cut(s, ":")
	user, uerr := strconv.ParseUint(u, 10, 31)
	group, gerr := strconv.ParseUint(g, 10, 31)
	if !ok || uerr != nil || gerr != nil {
		return 0, 0, fmt.Errorf("--owner %q: use a user and a group as numbers, such as 65532:65532", s)
	}
	return int(user), int(group), nil
}

// predecessor gives the data plane its sockets of a hand-over.
type predecessor struct{ h *handover.Handover }

func (p predecessor) Inherited(addr netip.AddrPort) []int {
	return p.h.Inherited(handover.Traffic, addr)
}
func (p predecessor) Ask(addr netip.AddrPort) []int { return p.h.Ask(handover.Traffic, addr) }
func (p predecessor) Beside() bool                  { return p.h.Beside() }

// takeOver asks the process before this one for its sockets. Without a directory
// there is no hand-over.
func (p *process) takeOver(ctx context.Context, dir string) (dataplane.Predecessor, error) {
	if dir == "" {
		p.serves.Store(true)
		return nil, nil
	}
	var err error
	p.handover, err = handover.Open(handover.Options{Dir: dir, Build: version, Gate: (*gate)(p), Logger: p.log, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("--handover-dir: %w", err)
	}
	p.handover.Take(ctx)
	return predecessor{p.handover}, nil
}

// serving tells the process before this one that the first snapshot is served.
func (p *process) serving(ctx context.Context) {
	if p.handover == nil {
		return
	}
	if err := p.handover.Serving(ctx); err != nil {
		p.log.Error("the next process will not find this one", zap.Error(err))
	}
	if p.admin != nil {
		p.admin.resume()
	}
	p.serves.Store(true)
}

// wait waits for the time to drain.
func (p *process) wait(ctx context.Context) {
	var replaced <-chan struct{}
	if p.handover != nil && p.exit {
		replaced = p.handover.Succeeded()
	}
	select {
	case <-ctx.Done():
	case <-replaced:
	}
}

const (
	// How long a connection without a request is kept in a drain. When another
	// process accepts there is no hurry, and the more of them see an answer that
	// says close, the fewer are closed while a request is on its way.
	idleAlone    = time.Second
	idleReplaced = 10 * time.Second
)

// leave ends this process's part in the hand-over, and returns how long to keep
// connections without a request.
func (p *process) leave(ctx context.Context) time.Duration {
	if p.handover == nil {
		return min(p.drain/4, idleAlone)
	}
	wait, cancel := context.WithTimeout(ctx, p.drain/2)
	defer cancel()
	p.handover.Leave(wait)
	if p.handover.Stats().Accepting {
		return min(p.drain/4, idleAlone)
	}
	return min(p.drain/3, idleReplaced)
}

func (p *process) handoverStats() metrics.HandoverStats {
	if p.handover == nil {
		return metrics.HandoverStats{Accepting: true}
	}
	s := p.handover.Stats()
	return metrics.HandoverStats{
		Taken: s.Taken, Given: s.Given, Resumed: s.Resumed, Refused: s.Refused, Sockets: s.Sockets, Accepting: s.Accepting,
	}
}

// gate is the process as the hand-over sees it.
type gate process

// Sockets implements [handover.Gate].
func (g *gate) Sockets() ([]handover.Socket, error) {
	list, err := g.server.Sockets()
	if err != nil {
		return nil, err
	}
	var out []handover.Socket
	for _, s := range list {
		out = append(out, handover.Socket{Role: handover.Traffic, Addr: s.Addr, File: s.File})
	}
	if g.admin == nil {
		return out, nil
	}
	s, ok, err := g.admin.socket()
	if err != nil {
		g.log.Warn("the admin server's socket is not handed over", zap.Error(err))
	} else if ok {
		out = append(out, s)
	}
	return out, nil
}

// Pause implements [handover.Gate].
func (g *gate) Pause() {
	g.server.Pause()
	if g.admin != nil {
		g.admin.pause()
	}
}

// Resume implements [handover.Gate].
func (g *gate) Resume() {
	g.server.Resume()
	if g.admin != nil {
		g.admin.resume()
	}
}
