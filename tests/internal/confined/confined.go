// Package confined runs programs of tests in control groups of their own, within limits of memory and CPU, as a kubelet
// runs containers.
//
// In: a name and limits. Out: commands whose program enters the group before it begins, the most memory that the group
// took, and how often the kernel killed in it. Both versions of control groups do, and a mixture of them. It needs root.
//
// It must never limit a process that it did not start.
package confined

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Limits are those of a group; zero is none.
type Limits struct {
	// Memory is in bytes, CPU in cores.
	Memory int64
	CPU    float64
}

// Group is a control group. One of version 1 has a directory for each controller.
type Group struct {
	// memory and cpu are its directories: the same one in version 2.
	memory, cpu string
	isSecond    bool
}

// period is that in which a group may use its share of the CPU: microseconds.
const period = 100_000

// New makes a group of a name that no other group has.
func New(name string, limits Limits) (*Group, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	g, err := find(string(mountinfo))
	if err != nil {
		return nil, err
	}
	if g.isSecond {
		if err := write(g.memory, "cgroup.subtree_control", "+memory +cpu"); err != nil {
			return nil, err
		}
	}
	g.memory, g.cpu = filepath.Join(g.memory, name), filepath.Join(g.cpu, name)
	for _, dir := range g.directories() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), g.Remove())
		}
	}
	if err := g.limit(limits); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// find returns where the controllers of memory and CPU are mounted.
func find(mountinfo string) (*Group, error) {
	first, second := &Group{}, ""
	for line := range strings.Lines(mountinfo) {
		before, after, is := strings.Cut(line, " - ")
		fields, about := strings.Fields(before), strings.Fields(after)
		if !is || len(fields) < 5 || len(about) < 3 {
			continue
		}
		switch about[0] {
		case "cgroup2":
			second = fields[4]
		case "cgroup":
			for option := range strings.SplitSeq(about[2], ",") {
				switch option {
				case "memory":
					first.memory = fields[4]
				case "cpu":
					first.cpu = fields[4]
				}
			}
		}
	}
	switch {
	case first.memory != "" && first.cpu != "":
		return first, nil
	case second != "":
		return &Group{memory: second, cpu: second, isSecond: true}, nil
	}
	return nil, errors.New("find control groups: the controllers memory and cpu are not mounted: boot with cgroup_enable=memory")
}

func (g *Group) directories() []string {
	if g.isSecond {
		return []string{g.memory}
	}
	return []string{g.memory, g.cpu}
}

func (g *Group) limit(limits Limits) error {
	var failed error
	if limits.Memory > 0 {
		failed = write(g.memory, g.file("memory.limit_in_bytes", "memory.max"), strconv.FormatInt(limits.Memory, 10))
	}
	if quota := strconv.Itoa(int(limits.CPU * period)); limits.CPU > 0 {
		if g.isSecond {
			quota += " " + strconv.Itoa(period)
		}
		failed = errors.Join(failed, write(g.cpu, g.file("cpu.cfs_quota_us", "cpu.max"), quota))
	}
	return failed
}

// file returns the name of a file in version 1 or in version 2.
func (g *Group) file(first, second string) string {
	if g.isSecond {
		return second
	}
	return first
}

// Command returns a command whose program runs in the group.
func (g *Group) Command(program string, args ...string) *exec.Cmd {
	var enter strings.Builder
	for _, dir := range g.directories() {
		fmt.Fprintf(&enter, "echo $$ > '%s/cgroup.procs' && ", dir)
	}
	return exec.Command("/bin/sh", append([]string{"-c", enter.String() + `exec "$0" "$@"`, program}, args...)...)
}

// Peak returns the most memory that the group took since it was made, in bytes: what its programs have resident, and what the
// kernel holds for them.
func (g *Group) Peak() (int64, error) {
	file := filepath.Join(g.memory, g.file("memory.max_usage_in_bytes", "memory.peak"))
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read how much memory a control group took: %w", err)
	}
	peak, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read how much memory a control group took: %w", err)
	}
	return peak, nil
}

// Kills returns how many processes of the group the kernel ended for want of memory.
func (g *Group) Kills() (int, error) {
	file := filepath.Join(g.memory, g.file("memory.oom_control", "memory.events"))
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read how often a control group was short of memory: %w", err)
	}
	return killsIn(string(text))
}

func killsIn(events string) (int, error) {
	for line := range strings.Lines(events) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			return strconv.Atoi(strings.TrimSpace(count))
		}
	}
	return 0, errors.New("read how often a control group was short of memory: the kernel does not count oom_kill")
}

// removeWithin is how long the kernel may hold a group after its last process has gone.
const removeWithin = 10 * time.Second

// Remove removes the group, whose programs have ended.
func (g *Group) Remove() error {
	var failed error
	for _, dir := range g.directories() {
		for end := time.Now().Add(removeWithin); ; <-time.After(10 * time.Millisecond) {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if time.Now().After(end) {
				failed = errors.Join(failed, fmt.Errorf("remove a control group: %w", err))
				break
			}
		}
	}
	return failed
}

func write(dir, file, text string) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		return fmt.Errorf("limit a control group to %s: %w", text, err)
	}
	return nil
}
