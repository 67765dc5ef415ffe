package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/headgate/headgate/controllers"
	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/port"
	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/controllers/status"
	"github.com/headgate/headgate/dataplane"
	"github.com/headgate/headgate/dataplane/ir"
)

type serveFlags struct {
	dataPlaneFlags
	bind      []string
	statusDir string
	echo      string
}

func serveCmd() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve the Gateway API objects of a directory",
		Long: `Serve the Gateway API objects of a directory of YAML files, without a cluster.

Changes of the files are followed: a good change is swapped in without touching a
connection; a broken file keeps what was served before and says what is wrong. The
status that a cluster would show is written to DIR/status.`,
		Example: `  headgate serve config/samples --with-echo 127.0.0.1:18080
  headgate serve /etc/headgate --bind-address 192.0.2.10 --access-log /var/log/headgate/access.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return serve(cmd.Context(), args[0], &f) },
	}
	fs := cmd.Flags()
	f.dataPlaneFlags.add(fs)
	fs.StringSliceVar(&f.bind, "bind-address", anyAddress(), "addresses of Gateways that name none in spec.addresses; repeatable")
	fs.StringVar(&f.statusDir, "status-dir", "", "where the status is written; default DIR/status")
	fs.BoolVar(&f.exit, "exit-after-handover", true, "drain and end when a new process has taken the sockets over; false to wait for SIGTERM, ready to serve again if the new one is lost")
	fs.StringVar(&f.echo, "with-echo", "", "also run a backend that echoes requests, at this address, such as 127.0.0.1:18080")
	return cmd
}

// anyAddress returns the addresses that stand for every address of this host:
// those of the families that it has.
func anyAddress() []string {
	list := []string{"0.0.0.0"}
	if ln, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		_ = ln.Close()
		list = append(list, "::")
	}
	return list
}

// compileOptions are what file mode tells the compiler.
func compileOptions(bind []string) (compile.Options, error) {
	var o compile.Options
	for _, s := range bind {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return o, fmt.Errorf("--bind-address %q: use an IP address", s)
		}
		o.Addresses.Bind = append(o.Addresses.Bind, a)
	}
	return o, nil
}

func serve(ctx context.Context, dir string, f *serveFlags) error {
	opts, err := compileOptions(f.bind)
	if err != nil {
		return err
	}
	if f.statusDir == "" {
		f.statusDir = filepath.Join(dir, "status")
	}
	src, err := file.Open(dir, file.Options{Compile: opts, StatusDir: f.statusDir})
	if err != nil {
		return err
	}
	sink := status.NewDir(f.statusDir, time.Now)
	var loop *controllers.Loop
	p, err := f.start(ctx, processOf(src), func() error {
		select {
		case <-loop.Ready():
			return nil
		default:
			return errors.New("the first configuration is not applied yet")
		}
	}, func(server *dataplane.Server, log *zap.Logger) (err error) {
		loop, err = controllers.New(controllers.Options{Source: src, DataPlane: newSettling(server, giveBack), Sink: sink, Ports: port.New(port.Options{}), Logger: log})
		return err
	})
	if err != nil {
		return err
	}
	if f.echo != "" {
		e, err := startEcho(f.echo, p.log)
		if err != nil {
			return errors.Join(err, p.stop())
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = e.close(ctx) // the process ends
		}()
		p.log.Info("echo backend listening", zap.String("address", f.echo))
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(run) }()
	select {
	case <-loop.Ready():
		p.serving(ctx)
		p.log.Info("serving", zap.String("directory", dir), zap.Strings("listeners", describe(loop.State().Snapshot)))
		if f.echo != "" {
			printTries(loop.State().Snapshot)
		}
	case <-ctx.Done():
	}
	p.wait(ctx)
	stop()
	err = <-ended
	return errors.Join(err, p.stop())
}

// processOf returns what a directory says of the process. What is wrong with it is
// told later, by the loop.
func processOf(src *file.Source) func(context.Context, *zap.Logger) ir.Process {
	return func(context.Context, *zap.Logger) ir.Process {
		in, _ := src.Input()
		snap, _ := compile.Compile(in)
		return snap.Process
	}
}

// describe lists the sockets of a snapshot.
func describe(snap *ir.Snapshot) []string {
	var out []string
	for _, s := range snap.Sockets {
		out = append(out, s.Protocol.String()+" "+s.Name)
	}
	return out
}

// printTries prints a few requests to try.
func printTries(snap *ir.Snapshot) {
	var lines []string
	for _, s := range snap.Sockets {
		if s.Addr.Addr().Is6() || s.Protocol != ir.ProtocolHTTP {
			continue
		}
		host := "127.0.0.1"
		if !s.Addr.Addr().IsUnspecified() {
			host = s.Addr.Addr().String()
		}
		base := "http://" + host + ":" + strconv.Itoa(int(s.Addr.Port()))
		for _, l := range s.Listeners {
			for _, r := range l.Routes {
				if line := tryRoute(base, r); line != "" {
					lines = append(lines, line)
				}
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Printf("\nTry:\n%s\n\n", strings.Join(lines, "\n"))
}

// tryRoute is a curl line that a route answers.
func tryRoute(base string, r *ir.Route) string {
	m := r.Rules[0].Matches[0]
	if m.Path.Kind == ir.MatchRegex {
		return ""
	}
	var b strings.Builder
	b.WriteString("  curl -i")
	if h := r.Hostnames[0]; h != "" {
		fmt.Fprintf(&b, " -H 'Host: %s'", strings.Replace(h, "*", "any", 1))
	}
	if m.Method != "" {
		fmt.Fprintf(&b, " -X %s", m.Method)
	}
	for _, x := range m.Headers {
		if x.Kind != ir.MatchExact {
			return ""
		}
		fmt.Fprintf(&b, " -H '%s: %s'", x.Name, x.Value)
	}
	fmt.Fprintf(&b, " %s%s", base, m.Path.Value)
	for i, q := range m.Query {
		if q.Kind != ir.MatchExact {
			return ""
		}
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		fmt.Fprintf(&b, "%s%s=%s", sep, q.Name, q.Value)
	}
	return b.String()
}
