package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/headgate/headgate/test/cluster/cluster"
	"github.com/headgate/headgate/test/cluster/image"
)

// enter runs a command on the node and exits as it does.
func (a *app) enter(_ context.Context, args []string) error {
	rest, dir, err := parseLeading(args)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return usagef("say what to run")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	command := exec.Command(rest[0], rest[1:]...)
	command.Stdin, command.Stdout, command.Stderr = a.stdin, a.stdout, a.stderr
	if err := c.Start(command); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			fmt.Fprintf(a.stderr, "cluster enter: %v\n", err)
			return exitError{127} // as a shell has it
		}
		return err
	}
	defer passSignals(command.Process)()
	err = command.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return exitError{128 + int(status.Signal())}
		}
		return exitError{exit.ExitCode()}
	}
	return err
}

// passSignals leaves it to a process how signals end this program, until stop
// is called. What the terminal sends, the process gets from the terminal, too.
func passSignals(process *os.Process) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				process.Signal(s) // it may have ended meanwhile
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// image makes an image archive.
func (a *app) image(_ context.Context, args []string) error {
	rest, _, err := parseLeading(args)
	if err != nil {
		return err
	}
	if len(rest) < 4 {
		return usagef("a name, a file, a directory and an entry point are needed")
	}
	return image.Write(rest[1], image.Spec{Names: strings.Split(rest[0], ","), Root: rest[2], Entrypoint: rest[3:]})
}

// load gives image archives to the node.
func (a *app) load(ctx context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return usagef("say which archive")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	for _, path := range rest {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(c.LoadImage(ctx, file, a.stderr), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// addresses changes or lists the node's addresses.
func (a *app) addresses(_ context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return usagef("add, del or list")
	}
	var prefixes []netip.Prefix
	for _, text := range rest[1:] {
		prefix, err := parsePrefix(text)
		if err != nil {
			return usageError{err.Error()}
		}
		prefixes = append(prefixes, prefix)
	}
	verb := rest[0]
	if (verb == "list") != (len(prefixes) == 0) {
		return usagef("add and del need addresses, list takes none")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	switch verb {
	case "list":
		addresses, err := c.Addresses()
		for _, address := range addresses {
			fmt.Fprintln(a.stdout, address)
		}
		return err
	case "add":
		return each(prefixes, c.AddAddresses)
	case "del":
		return each(prefixes, c.RemoveAddresses)
	}
	return usagef("%q is neither add, del nor list", verb)
}

func each(prefixes []netip.Prefix, change func(netip.Prefix) ([]netip.Addr, error)) error {
	for _, prefix := range prefixes {
		if _, err := change(prefix); err != nil {
			return err
		}
	}
	return nil
}

// apiServer ends or starts the API server.
func (a *app) apiServer(ctx context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) != 1 || rest[0] != "stop" && rest[0] != "start" {
		return usagef("stop or start")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	change := c.StopAPIServer
	if rest[0] == "start" {
		change = func() (bool, error) { return c.StartAPIServer(ctx) }
	}
	changed, err := change()
	if err != nil {
		return err
	}
	if !changed {
		fmt.Fprintf(a.stderr, "there was nothing to %s\n", rest[0])
	}
	return nil
}

// crds applies CRDs.
func (a *app) crds(ctx context.Context, args []string) error {
	rest, dir, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usagef("say which CRDs")
	}
	c, err := cluster.Open(dir)
	if err != nil {
		return err
	}
	return c.ApplyCRDs(ctx, rest[0], a.stderr)
}

// quote quotes a word for a POSIX shell, if it needs it.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
