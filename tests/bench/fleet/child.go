package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// child is a program that the bench started. It ends with the bench, however that ends.
type child struct {
	name    string
	command *exec.Cmd
	log     string
	ended   chan struct{}
	// asked is closed before the program is told to end, so that its end is no surprise.
	asked chan struct{}
}

// program is what to start, and how.
type program struct {
	name, path string
	args, env  []string
}

// start starts a program with its output in a file of its own in dir. If it ends before
// it is told to, fail is called with the last lines of its output.
func start(p program, dir string, fail context.CancelCauseFunc) (*child, error) {
	c := &child{name: p.name, log: filepath.Join(dir, p.name+".log"), ended: make(chan struct{}), asked: make(chan struct{})}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p.name, err)
	}
	defer func() { _ = out.Close() }()
	c.command = exec.Command(p.path, p.args...)
	c.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, p.env...)
	c.command.Stdout, c.command.Stderr = out, out
	c.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		err := c.command.Wait()
		close(c.ended)
		select {
		case <-c.asked:
		default:
			fail(fmt.Errorf("%s ended by itself: %w: its log ends with:\n%s", c.name, err, c.tail()))
		}
	}()
	return c, nil
}

// stopLimit is how long a program may take to end in its own way.
const stopLimit = 30 * time.Second

// stop tells the program to end and waits until it has.
func (c *child) stop(signal syscall.Signal) error {
	close(c.asked)
	if err := c.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopLimit):
		_ = c.command.Process.Kill()
		<-c.ended
		return fmt.Errorf("stop %s: it had not ended %v after signal %v", c.name, stopLimit, signal)
	}
}

// tail is the end of what the program printed.
func (c *child) tail() string {
	const most = 3000
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// cpu is the processor time that the program has used, in user and kernel mode.
func (c *child) cpu() (time.Duration, error) {
	used, err := live.CPUTime(c.command.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", c.name, err)
	}
	return used, nil
}

func (c *child) memory() (live.ProcessMemory, error) {
	held, err := live.MemoryOf(c.command.Process.Pid)
	if err != nil {
		return held, fmt.Errorf("measure %s: %w", c.name, err)
	}
	return held, nil
}
