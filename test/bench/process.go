//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a started program with all of its children, which share its
// process group.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *output
	done  chan struct{}
	err   error // from Wait; read after done
}

// output keeps what a process printed, up to a limit.
type output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	lines chan string // whole lines of standard output
	part  []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() < 1<<20 {
		o.b.Write(p)
	}
	if o.lines != nil {
		o.part = append(o.part, p...)
		for {
			i := bytes.IndexByte(o.part, '\n')
			if i < 0 {
				break
			}
			select {
			case o.lines <- string(o.part[:i]):
			default: // nobody reads that many
			}
			o.part = o.part[i+1:]
		}
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts a program on the CPUs; none means any. Its threads and children
// inherit them.
func launch(cpus []int, name string, args ...string) (*process, error) {
	p := &process{
		name: name,
		cmd:  exec.Command(name, args...),
		out:  &output{lines: make(chan string, 64)},
		done: make(chan struct{}),
	}
	p.cmd.Stdout = p.out
	p.cmd.Stderr = &output{}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := onCPUs(cpus, p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// onCPUs calls f on a thread that is bound to the CPUs.
func onCPUs(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to CPUs %v: %w", cpus, err)
	}
	err := f()
	if back := unix.SchedSetaffinity(0, &before); back != nil {
		return errors.Join(err, back)
	}
	return err
}

// messages returns what the process printed to standard error.
func (p *process) messages() string { return p.cmd.Stderr.(*output).String() }

// line waits for the next line of standard output.
func (p *process) line(d time.Duration) (string, error) {
	select {
	case s := <-p.out.lines:
		return s, nil
	default:
	}
	select {
	case s := <-p.out.lines:
		return s, nil
	case <-p.done:
		select { // it may have been its last one
		case s := <-p.out.lines:
			return s, nil
		default:
			return "", fmt.Errorf("%s ended: %v: %s", p.name, p.err, p.messages())
		}
	case <-time.After(d):
		return "", fmt.Errorf("%s printed nothing for %v", p.name, d)
	}
}

// awaitPort waits until the address accepts connections.
func (p *process) awaitPort(addr string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %v: %s%s", p.name, p.err, p.out, p.messages())
		default:
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s does not listen on %s: %s%s", p.name, addr, p.out, p.messages())
}

// stop ends the process and all that it started.
func (p *process) stop() {
	p.stdin.Close()
	group := -p.cmd.Process.Pid
	unix.Kill(group, unix.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(2 * time.Second):
	}
	unix.Kill(group, unix.SIGKILL) // what is left of the group; none is an error to ignore
	<-p.done
}

// usage is what a process group has used.
type usage struct {
	cpu time.Duration // user and system time
	rss int64         // bytes
}

// use adds up the processes of the group.
func (p *process) use() (usage, error) {
	group := p.cmd.Process.Pid
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return usage{}, err
	}
	var u usage
	found := false
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		one, pgrp, err := parseStat(string(data))
		if err != nil {
			return usage{}, err
		}
		if pgrp == group {
			u.cpu += one.cpu
			u.rss += one.rss
			found = true
		}
	}
	if !found {
		return usage{}, fmt.Errorf("%s has ended: %s", p.name, p.messages())
	}
	return u, nil
}

// parseStat reads a line of /proc/PID/stat (see proc(5)): user and system time
// in ticks of 10 ms, and resident pages.
func parseStat(line string) (usage, int, error) {
	end := strings.LastIndexByte(line, ')') // the name may hold anything
	if end < 0 {
		return usage{}, 0, fmt.Errorf("stat line %q", line)
	}
	fields := strings.Fields(line[end+1:]) // from field 3 on
	if len(fields) < 22 {
		return usage{}, 0, fmt.Errorf("stat line %q", line)
	}
	var n [4]int64
	for i, field := range []int{5, 14, 15, 24} {
		v, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return usage{}, 0, fmt.Errorf("stat line %q: %w", line, err)
		}
		n[i] = v
	}
	const tick = 10 * time.Millisecond
	return usage{cpu: time.Duration(n[1]+n[2]) * tick, rss: n[3] * int64(os.Getpagesize())}, int(n[0]), nil
}
