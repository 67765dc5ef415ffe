package cases

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaryEnv carries the path of the built gateway to the tests.
const binaryEnv = "HEADGATE_CASES_BINARY"

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the gateway once and runs the tests with it.
func run(m *testing.M) (int, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return 0, err
	}
	if err := watchSources(root); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "headgate-cases-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "headgate")
	args := []string{"build", "-o", binary}
	if raceDetector {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "./cmd/headgate")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	if err := os.Setenv(binaryEnv, binary); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// watchSources looks at each source file of the gateway, so that go test's
// cache knows that the result depends on them: a build in a child process is
// invisible to it.
func watchSources(root string) error {
	for _, top := range []string{"go.mod", "api", "cmd", "controllers", "dataplane"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if os.IsNotExist(err) {
					return nil
				}
				return err
			}
			if !d.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
