// Command image makes Headgate's container images, without a container tool or
// a registry. It is the command line of package release; DESIGN.md says why it
// is as it is, and docs/image.md how to use what it makes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/headgate/headgate/test/image/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run makes what args ask for and says on out what it has made.
func run(ctx context.Context, args []string, out, complaints io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(complaints)
	var (
		version   = flags.String("version", "", "version of the program and tag of the image; default: what git describe says")
		revision  = flags.String("revision", "", "commit, for the labels; default: what git says, if it is there")
		platforms = flags.String("platforms", "", "comma-separated; default: all that are released, or with -root this machine's")
		dir       = flags.String("o", "", "directory for the archives; default: bin/image of the repository")
		root      = flags.String("root", "", "write the files of one image into this directory, and no archive; needs root")
	)
	flags.Usage = func() {
		fmt.Fprintln(complaints, "usage: go run . [flags]\nMakes Headgate's container images from this checkout.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; see -help", flags.Arg(0))
	}
	wanted, err := parsePlatforms(*platforms, *root != "")
	if err != nil {
		return err
	}
	source, err := release.FindSource(ctx, ".", *version, *revision)
	if err != nil {
		return err
	}
	if *root != "" {
		if len(wanted) != 1 {
			return errors.New("-root is for one platform")
		}
		return release.WriteRoot(ctx, source, wanted[0], *root)
	}
	if *dir == "" {
		*dir = source.Dir + "/bin/image"
	}
	made, err := release.Build(ctx, source, wanted, *dir)
	if err != nil {
		return err
	}
	return report(out, made)
}

func parsePlatforms(list string, one bool) ([]release.Platform, error) {
	switch {
	case list == "" && one:
		return []release.Platform{release.Host()}, nil
	case list == "":
		return release.All(), nil
	}
	var platforms []release.Platform
	for s := range strings.SplitSeq(list, ",") {
		p, err := release.ParsePlatform(s)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, p)
	}
	return platforms, nil
}

func report(out io.Writer, made release.Release) error {
	var b strings.Builder
	fmt.Fprintln(&b, made.Reference)
	for _, i := range made.Images {
		fmt.Fprintf(&b, "%-13s %5.1f MB, %4.1f MB compressed  %s\n  %s\n  %s\n",
			i.Platform, float64(i.Size)/1e6, float64(i.Compressed)/1e6, i.Digest, i.Archive, i.SBOM)
	}
	if made.Archive != "" {
		fmt.Fprintf(&b, "%-13s %28s %s\n  %s\n", "all", "", made.Digest, made.Archive)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
