//go:build linux

package rig

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

// Process is a started program with all of its children, which share its
// process group.
type Process struct {
	// Name is the program's.
	Name string
	// Stdin is its standard input; many tools end when it is closed.
	Stdin io.WriteCloser
	// Out is what it printed to standard output.
	Out *Output
	// Done is closed when it has ended.
	Done chan struct{}

	cmd *exec.Cmd
	err error // from Wait; read after Done
}

// Output keeps what a process printed, up to a limit.
type Output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	lines chan string // whole lines of standard output
	part  []byte
}

// Write keeps what a process prints.
func (o *Output) Write(p []byte) (int, error) {
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

// String returns what was kept.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Launch starts a program on the CPUs; none means any. Its threads and children
// inherit them.
func Launch(cpus []int, name string, args ...string) (*Process, error) {
	p := &Process{
		Name: name,
		cmd:  exec.Command(name, args...),
		Out:  &Output{lines: make(chan string, 64)},
		Done: make(chan struct{}),
	}
	p.cmd.Stdout = p.Out
	p.cmd.Stderr = &Output{}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := onCPUs(cpus, p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.Done)
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

// Messages returns what the process printed to standard error.
func (p *Process) Messages() string { return p.cmd.Stderr.(*Output).String() }

// Line waits for the next line of standard output.
func (p *Process) Line(d time.Duration) (string, error) {
	select {
	case s := <-p.Out.lines:
		return s, nil
	default:
	}
	select {
	case s := <-p.Out.lines:
		return s, nil
	case <-p.Done:
		select { // it may have been its last one
		case s := <-p.Out.lines:
			return s, nil
		default:
			return "", fmt.Errorf("%s ended: %v: %s", p.Name, p.err, p.Messages())
		}
	case <-time.After(d):
		return "", fmt.Errorf("%s printed nothing for %v", p.Name, d)
	}
}

// AwaitPort waits until the address accepts connections.
func (p *Process) AwaitPort(addr string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		select {
		case <-p.Done:
			return fmt.Errorf("%s ended: %v: %s%s", p.Name, p.err, p.Out, p.Messages())
		default:
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s does not listen on %s: %s%s", p.Name, addr, p.Out, p.Messages())
}

// Stop ends the process and all that it started.
func (p *Process) Stop() {
	p.Stdin.Close()
	group := -p.cmd.Process.Pid
	unix.Kill(group, unix.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(2 * time.Second):
	}
	unix.Kill(group, unix.SIGKILL) // what is left of the group; none is an error to ignore
	<-p.Done
}

// Usage is what a process group has used.
type Usage struct {
	CPU time.Duration // user and system time
	RSS int64         // bytes
}

// Use adds up the processes of the group.
func (p *Process) Use() (Usage, error) {
	var u Usage
	err := p.group(func(pid int, one Usage) error {
		// Ticks are cut off per process, which hides the work of many.
		u.CPU += max(one.CPU, ranFor(pid))
		u.RSS += one.RSS
		return nil
	})
	return u, err
}

// ranFor is how long a process was on a CPU, with all its threads, by its CPU
// clock (see clock_getcpuclockid(3)); 0 when it has none.
func ranFor(pid int) time.Duration {
	const byScheduler = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|byScheduler, &ts); err != nil {
		return 0 // it ended meanwhile
	}
	return time.Duration(ts.Nano())
}

// PSS adds up the group's resident memory with each shared page counted once, in
// bytes. It takes a while for many processes.
func (p *Process) PSS() (int64, error) {
	var sum int64
	err := p.group(func(pid int, _ Usage) error {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if err != nil {
			return nil // it ended meanwhile
		}
		_, rest, found := strings.Cut(string(data), "\nPss:")
		fields := strings.Fields(rest)
		if !found || len(fields) == 0 {
			return fmt.Errorf("no Pss in smaps_rollup of %d", pid)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		sum += kib << 10
		return err
	})
	return sum, err
}

// group calls f for each process of the group.
func (p *Process) group(f func(pid int, u Usage) error) error {
	group := p.cmd.Process.Pid
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		one, pgrp, err := parseStat(string(data))
		if err != nil {
			return err
		}
		if pgrp == group {
			found = true
			if err := f(pid, one); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("%s has ended: %s", p.Name, p.Messages())
	}
	return nil
}

// parseStat reads a line of /proc/PID/stat (see proc(5)): user and system time
// in ticks of 10 ms, and resident pages.
func parseStat(line string) (Usage, int, error) {
	end := strings.LastIndexByte(line, ')') // the name may hold anything
	if end < 0 {
		return Usage{}, 0, fmt.Errorf("stat line %q", line)
	}
	fields := strings.Fields(line[end+1:]) // from field 3 on
	if len(fields) < 22 {
		return Usage{}, 0, fmt.Errorf("stat line %q", line)
	}
	var n [4]int64
	for i, field := range []int{5, 14, 15, 24} {
		v, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return Usage{}, 0, fmt.Errorf("stat line %q: %w", line, err)
		}
		n[i] = v
	}
	const tick = 10 * time.Millisecond
	return Usage{CPU: time.Duration(n[1]+n[2]) * tick, RSS: n[3] * int64(os.Getpagesize())}, int(n[0]), nil
}
