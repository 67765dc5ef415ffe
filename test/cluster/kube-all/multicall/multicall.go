package multicall

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Program is one of the linked programs. It gets its arguments as os.Args has
// them, its own name first, and returns its exit code.
type Program func(args []string) int

// Run runs the program that args names: by args[0], as through a symbolic
// link, or else by args[1]. It returns the program's exit code, or 2 after
// saying on stderr which programs there are.
func Run(args []string, programs map[string]Program, stderr io.Writer) int {
	for _, skip := range []int{0, 1} {
		if len(args) <= skip {
			break
		}
		name := filepath.Base(args[skip])
		if run, ok := programs[name]; ok {
			return run(append([]string{name}, args[skip+1:]...))
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(stderr, "usage: PROGRAM [ARGUMENT...], where PROGRAM is one of %s\n", strings.Join(names, ", "))
	return 2
}
