package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	counterPeriod  = 15 * time.Second // between two lines of progress
	complaintLimit = 60               // lines of a failed build that are kept
)

// counter is the standard error of "go build -v": it counts the packages that
// are named there, says so from time to time, and keeps all other lines.
type counter struct {
	progress   io.Writer
	total      int // packages at most; those in Go's build cache are never named
	start      time.Time
	said       time.Time
	compiled   int
	partial    []byte // a line without its end
	complaints []string
	now        func() time.Time
}

func newCounter(progress io.Writer, total int, start time.Time) *counter {
	return &counter{progress: progress, total: total, start: start, said: start, now: time.Now}
}

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	c.partial = append(c.partial, p...)
	for {
		line, rest, found := bytes.Cut(c.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.line(string(line))
		c.partial = rest
	}
}

func (c *counter) line(line string) {
	if !isPackage(line) {
		if strings.HasPrefix(line, "go: downloading") {
			return
		}
		if len(c.complaints) < complaintLimit {
			c.complaints = append(c.complaints, line)
		}
		return
	}
	c.compiled++
	if now := c.now(); now.Sub(c.said) >= counterPeriod {
		c.said = now
		fmt.Fprintf(c.progress, "  compiled %d of at most %d packages, %s\n", c.compiled, c.total, now.Sub(c.start).Round(time.Second))
	}
}

// isPackage tells an import path from a compiler's or linker's message.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :\t#") && !strings.HasPrefix(line, ".")
}
