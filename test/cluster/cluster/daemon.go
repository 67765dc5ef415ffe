package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	probePeriod  = 50 * time.Millisecond
	probeTimeout = 2 * time.Second
	logTail      = 4096 // bytes of a log that an error shows
)

// daemon is a program that this process has started and that outlives it.
type daemon struct {
	process process
	log     string
	ended   chan struct{} // closed when it has ended
}

// launch starts a program, in the node if there is one, and records it. The
// program keeps the lock held, if one is given.
func (c *Cluster) launch(p program, l *lock, attributes *syscall.SysProcAttr) (*daemon, error) {
	log := c.layout.log(p.name + ".log")
	// Appended to: a program that is started again goes on in its log.
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	defer out.Close()
	command := exec.Command(p.args[0], p.args[1:]...)
	command.Dir = c.layout.dir
	command.Env = []string{"PATH=" + systemPath, "HOME=" + c.layout.run(), marker + "=" + c.layout.dir}
	command.Stdout = out
	command.Stderr = out
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's signals are not for it
	if attributes != nil {
		command.SysProcAttr = attributes
	}
	if l != nil {
		command.ExtraFiles = []*os.File{l.file}
	}
	if node, ok := c.node(); ok {
		err = node.start(command)
	} else {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	d := &daemon{log: log, ended: make(chan struct{})}
	// Identified before it is waited for: until then even an ended one has its pid.
	d.process, err = identify(p.name, command.Process.Pid, p.args)
	go func() {
		command.Wait() // how it ended is in its log
		close(d.ended)
	}()
	if err != nil {
		return nil, err
	}
	c.state.set(d.process)
	if err := c.state.write(c.layout.state()); err != nil {
		return nil, errors.Join(err, d.process.kill())
	}
	return d, nil
}

// systemPath is where the programs find others, such as runc.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// await probes until the probe is content: until what is ready. It fails at
// once when the daemon ends, and when ctx does; then it shows the end of the
// daemon's log.
func (d *daemon) await(ctx context.Context, what string, probe func(context.Context) error) error {
	for {
		limited, cancel := context.WithTimeout(ctx, probeTimeout)
		err := probe(limited)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("%s ended before %s was ready; %s", d.process.Name, what, d.tail())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("%w before %s was ready", context.Cause(ctx), what)
			}
			return fmt.Errorf("%s is still not ready, and time is over: %w; %s", what, err, d.tail())
		case <-time.After(probePeriod):
		}
	}
}

// tail returns where the daemon's log is, and its end.
func (d *daemon) tail() string {
	file, err := os.Open(d.log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		if _, err := file.Seek(-logTail, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, logTail))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the end of %s:\n%s", d.log, strings.TrimSpace(string(content)))
}
