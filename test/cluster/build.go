package main

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/test/cluster/binaries"
	"github.com/headgate/headgate/test/cluster/cluster"
)

// build builds a part of the programs.
func (a *app) build(ctx context.Context, args []string) error {
	rest, _, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return usagef("one part at a time")
	}
	name := binaries.All()[0].Name()
	if len(rest) == 1 {
		name = rest[0]
	}
	part, err := binaries.ParsePart(name)
	if err != nil {
		return usageError{err.Error()}
	}
	cache, err := binaries.OpenDefault(ctx)
	if err != nil {
		return err
	}
	if err := cache.Build(ctx, part, a.stderr); err != nil {
		return err
	}
	older, err := cache.Older()
	if err != nil {
		return err
	}
	for _, dir := range older {
		fmt.Fprintf(a.stderr, "%s is of another version; delete it if nothing needs it\n", dir)
	}
	fmt.Fprintln(a.stdout, cache.Bin())
	return nil
}

// assets prints the directory of the programs, which must be built.
func (a *app) assets(ctx context.Context, args []string) error {
	rest, _, err := parse(args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("no arguments")
	}
	cache, err := binaries.OpenDefault(ctx)
	if err != nil {
		return err
	}
	part, err := binaries.ParsePart("envtest")
	if err != nil {
		return err
	}
	if missing := cache.Missing(part); len(missing) > 0 {
		return &cluster.MissingError{Binaries: missing}
	}
	fmt.Fprintln(a.stdout, cache.Bin())
	return nil
}
