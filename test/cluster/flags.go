package main

import (
	"errors"
	"flag"
	"io"
)

// parse parses flags anywhere among the arguments and returns the others.
// define may be nil.
func parse(args []string, define func(*flag.FlagSet)) (rest []string, dir string, err error) {
	flags := newFlags(&dir, define)
	for {
		if err := flags.Parse(args); err != nil {
			return nil, "", asUsage(err)
		}
		if flags.NArg() == 0 {
			return rest, dir, nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// parseLeading parses the flags before the first argument: what comes after it
// is another command's.
func parseLeading(args []string) (rest []string, dir string, err error) {
	flags := newFlags(&dir, nil)
	if err := flags.Parse(args); err != nil {
		return nil, "", asUsage(err)
	}
	return flags.Args(), dir, nil
}

func newFlags(dir *string, define func(*flag.FlagSet)) *flag.FlagSet {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // report says it
	flags.StringVar(dir, "dir", "", "state directory")
	if define != nil {
		define(flags)
	}
	return flags
}

func asUsage(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{err.Error()}
}
