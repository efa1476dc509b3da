// Package process starts the programs of an instance and reports whether they
// still run.
//
// In: a program, its arguments and where it belongs: control group, network and
// mount namespace, log file. Out: a process that outlives the command that
// started it. No pid is ever written down: a program is running when its control
// group holds a process of that name, so a stale number cannot mislead. It must
// never start what it cannot find again.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
)

// Program is one program of an instance.
type Program struct {
	Path   string
	Args   []string
	Env    []string
	Netns  string // file of the network namespace; empty: the host's
	Mounts string // file of the mount namespace; empty: the host's
	Cgroup string // its control group, which nothing else may use
	Log    string // file
}

// Start starts the program in a session of its own.
func (p Program) Start(h cgroup.Hierarchies) error {
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o755); err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	defer out.Close()
	argv := p.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = "/"
	release, err := enter(cmd, h, p.Cgroup)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	defer release()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Path, err)
	}
	go func() { _ = cmd.Wait() }() // so that it is no zombie if it ends before this command does
	return nil
}

// argv goes through nsenter, which turns into the program: ip netns exec would
// also hide the control groups from it.
func (p Program) argv() []string {
	argv := []string{}
	if p.Netns != "" {
		argv = append(argv, "--net="+p.Netns)
	}
	if p.Mounts != "" {
		argv = append(argv, "--mount="+p.Mounts)
	}
	if len(argv) > 0 {
		argv = append(append([]string{"nsenter"}, argv...), "--")
	}
	return append(append(argv, p.Path), p.Args...)
}

// enter makes the command's process be born inside its control group: there is
// no moment at which it could escape a kill of the group.
func enter(cmd *exec.Cmd, h cgroup.Hierarchies, path string) (release func(), err error) {
	dir, err := h.Make(path)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open control group %s: %w", dir, err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: fd}
	return func() { syscall.Close(fd) }, nil
}

// Run runs a short command inside a control group and returns what it printed
// on its standard output. The error holds what it printed on the other.
func Run(ctx context.Context, h cgroup.Hierarchies, path string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	release, err := enter(cmd, h, path)
	if err != nil {
		return "", fmt.Errorf("run %s: %w", argv[0], err)
	}
	defer release()
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", strings.Join(argv, " "), err, lastLines(stderr.Bytes(), 15))
	}
	return stdout.String(), nil
}

// Running reports whether the program runs in its control group. Its children,
// such as a container runtime's, may outlive it there and do not count.
func (p Program) Running(h cgroup.Hierarchies) bool {
	for _, pid := range h.Processes(p.Cgroup) {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && p.matches(string(data)) {
			return true
		}
	}
	return false
}

// matches also takes the program for running while it is still nsenter, or is
// turning into the program: for a moment it then has no command line at all.
// One that has ended has none either, but is no longer in the control group.
func (p Program) matches(cmdline string) bool {
	first, _, _ := strings.Cut(cmdline, "\x00")
	return cmdline == "" || first == p.Path || (first == "nsenter" && strings.Contains(cmdline, "\x00"+p.Path+"\x00"))
}

// Await polls ready until it returns nil. It gives up when the program ends or
// the time is over, with the end of the program's log.
func (p Program) Await(ctx context.Context, h cgroup.Hierarchies, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		alive := p.Running(h)
		if alive && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		if !alive {
			err = errors.New("it has ended")
		}
		return fmt.Errorf("wait for %s: %w; the end of its log %s:\n%s", filepath.Base(p.Path), err, p.Log, Tail(p.Log, 15))
	}
}

// Tail is the last lines of a file, or why it cannot be read.
func Tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error()
	}
	return lastLines(data, lines)
}

func lastLines(data []byte, n int) string {
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-n):], "\n  ")
}
