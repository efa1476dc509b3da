package beside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end by itself.
const stopLimit = 30 * time.Second

// Process is a program that was started. It ends with this one, however that ends.
type Process struct {
	*exec.Cmd
	ended chan struct{}
}

// Start starts a program, with its output in a file of its own.
func (w *World) Start(program string, args ...string) (*Process, error) {
	out, err := os.Create(w.LogOf(program))
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", program, err)
	}
	defer func() { _ = out.Close() }()
	p := &Process{Cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.Stdout, p.Stderr = out, out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.Cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		_ = p.Wait() // by a signal
		close(p.ended)
	}()
	return p, nil
}

// LogOf returns the path of a program's output.
func (w *World) LogOf(program string) string { return w.At(filepath.Base(program) + ".log") }

// Stop tells a program to end, and waits until it has.
func (p *Process) Stop() error {
	_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopLimit):
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("stop %s: it had not ended after %v", p.Path, stopLimit)
	}
}
