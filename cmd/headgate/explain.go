package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/controllers/compile"
	"github.com/headgate/headgate/controllers/source/file"
	"github.com/headgate/headgate/dataplane/ir"
	"github.com/headgate/headgate/dataplane/message"
	"github.com/headgate/headgate/dataplane/route"
)

type explainFlags struct {
	method  string
	headers []string
	output  string
}

func explainCmd() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain DIR URL",
		Short: "Say which rule a request would get, and why the others would not",
		Long: `Say which rule of the Gateway API objects in a directory a request would get, and why
the other rules would not, with the code that serves requests. Nothing is sent.

The URL's port and scheme choose the socket, its host the listener; a Host header
given with -H wins over the URL's host, as with curl.`,
		Example: `  headgate explain config/samples http://shop.example.com:8080/cart
  headgate explain config/samples http://localhost:8080/v2 -X POST -H 'Host: api.example.com' -H 'X-Env: canary'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.OutOrStdout(), args[0], args[1], &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.method, "request", "X", "GET", "the request's method")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "a header, 'Name: value'; repeatable")
	fs.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func explain(w io.Writer, dir, target string, f *explainFlags) error {
	req, port, secure, err := f.parse(target)
	if err != nil {
		return err
	}
	opts, err := compileOptions([]string{"0.0.0.0"})
	if err != nil {
		return err
	}
	src, err := file.Open(dir, file.Options{Compile: opts})
	if err != nil {
		return err
	}
	in, problems := src.Input()
	snap, _ := compile.Compile(in)
	if len(problems) > 0 {
		fmt.Fprintf(w, "%d problems in %s are left out of this; see headgate check %s\n\n", len(problems), dir, dir)
	}
	table, err := route.New(snap.Sockets, nil)
	if err != nil {
		return err
	}
	socket := choose(snap, port, secure)
	if socket == nil {
		return fmt.Errorf("no listener has port %d; the sockets are: %s", port, strings.Join(describe(snap), ", "))
	}
	e := table.Explain(socket.Name, req)
	switch f.output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	case "text":
		return printExplanation(w, req, e)
	}
	return fmt.Errorf("--output %q: use text or json", f.output)
}

// printExplanation writes an explanation for people.
func printExplanation(w io.Writer, req *message.Request, e *route.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s on %s, host %q\n", req.Method, e.Path, e.Socket, e.Host)
	if e.Refused != "" {
		fmt.Fprintf(&b, "\nRefused: %s\n", e.Refused)
	}
	if len(e.Listeners) > 0 {
		b.WriteString("\nListeners whose hostname matches:\n")
		for _, l := range e.Listeners {
			mark := " "
			if l.Chosen {
				mark = "*"
			}
			fmt.Fprintf(&b, "  %s %s (%s)\n", mark, l.Name, orAny(l.Hostname))
		}
	}
	steps := func(title string, list []route.Step) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, s := range list {
			fmt.Fprintf(&b, "  %-9s %s rule %d%s (%s, %s)", s.Outcome, s.Route, s.Rule, ruleName(s.RuleName), orAny(s.Hostname), s.Path)
			if s.Reason != "" {
				fmt.Fprintf(&b, ": %s", s.Reason)
			}
			b.WriteByte('\n')
		}
	}
	steps("Rules in the order in which they are asked:", e.Steps)
	steps("Rules that come close:", e.Near)
	switch {
	case e.Winner != nil:
		fmt.Fprintf(&b, "\nAnswered by: %s rule %d%s\n", e.Winner.Route, e.Winner.Rule, ruleName(e.Winner.RuleName))
	case e.Refused == "":
		b.WriteString("\nAnswered by: nobody, 404\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orAny(hostname string) string {
	if hostname == "" {
		return "any host"
	}
	return hostname
}

func ruleName(name string) string {
	if name == "" {
		return ""
	}
	return " " + strconv.Quote(name)
}

// parse returns the request that a URL and the flags describe, and its socket's
// port.
func (f *explainFlags) parse(target string) (req *message.Request, port uint16, secure bool, err error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, 0, false, err
	}
	switch u.Scheme {
	case "http":
		port = 80
	case "https":
		port, secure = 443, true
	default:
		return nil, 0, false, fmt.Errorf("%q: use a URL that begins with http:// or https://", target)
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, 0, false, fmt.Errorf("%q: the port must be between 1 and 65535", target)
		}
		port = uint16(n)
	}
	req = &message.Request{Method: []byte(f.method), Host: []byte(u.Host), Secure: secure, Major: 1, Minor: 1, HasQuery: u.RawQuery != ""}
	req.Query = []byte(u.RawQuery)
	// The path as it was written: net/url would decode it.
	rest := strings.TrimPrefix(target, u.Scheme+"://")
	req.Path = []byte("/")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && rest[i] == '/' {
		path, _, _ := strings.Cut(rest[i:], "?")
		req.Path = []byte(path)
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, 0, false, fmt.Errorf("-H %q: use 'Name: value'", h)
		}
		value = strings.TrimSpace(value)
		if strings.EqualFold(name, "Host") {
			req.Host = []byte(value)
			continue
		}
		req.Headers.Add(name, value)
	}
	return req, port, secure, nil
}

// choose returns the socket with the port; one with the scheme's protocol comes
// first.
func choose(snap *ir.Snapshot, port uint16, secure bool) *ir.Socket {
	var any *ir.Socket
	for _, s := range snap.Sockets {
		if s.Addr.Port() != port {
			continue
		}
		if (s.Protocol == ir.ProtocolHTTPS) == secure {
			return s
		}
		any = s
	}
	return any
}
