// Package cgroup keeps the processes of an instance together, so that all of
// them can be found and killed whatever they have become.
//
// In: paths such as /localkube/<tag>/node1. Out: directories in the machine's
// control group hierarchies, the processes in them. Programs are started inside
// the unified hierarchy, where children stay with their parents; containers are
// found in whatever hierarchy runc has put them. It must never touch a path
// that it was not given.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hierarchies are where the machine's control group hierarchies are mounted.
type Hierarchies struct {
	unified string
	v1      []string
}

// Find reads the hierarchies from the mount table. The error names what is
// missing for local clusters.
func Find() (Hierarchies, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, fmt.Errorf("find control groups: %w", err)
	}
	h := parse(string(data))
	if h.unified == "" {
		return h, errors.New("find control groups: no cgroup2 hierarchy is mounted: run mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified")
	}
	return h, nil
}

func parse(mountinfo string) Hierarchies {
	var h Hierarchies
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 {
			continue
		}
		switch mount := fields[4]; strings.Fields(after)[0] {
		case "cgroup2":
			h.unified = mount
		case "cgroup":
			h.v1 = append(h.v1, mount)
		}
	}
	return h
}

func (h Hierarchies) all() []string { return append([]string{h.unified}, h.v1...) }

// CPUStat returns the file that counts the CPU time of all processes of path and below it,
// those that have ended included.
func (h Hierarchies) CPUStat(path string) string { return filepath.Join(h.unified, path, "cpu.stat") }

// HasMemory reports whether the memory of pods can be limited on this machine.
func (h Hierarchies) HasMemory() bool {
	for _, mount := range h.v1 {
		if _, err := os.Stat(filepath.Join(mount, "memory.limit_in_bytes")); err == nil {
			return true
		}
		if _, err := os.Stat(filepath.Join(mount, "memory.usage_in_bytes")); err == nil {
			return true
		}
	}
	data, err := os.ReadFile(filepath.Join(h.unified, "cgroup.controllers"))
	return err == nil && slices.Contains(strings.Fields(string(data)), "memory")
}

// Make makes path in the unified hierarchy and returns its directory.
func (h Hierarchies) Make(path string) (string, error) {
	dir := filepath.Join(h.unified, path)
	return dir, until(time.Second, func() error {
		// Another instance's end may remove the common parent meanwhile.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make control group %s: %w", path, err)
		}
		return nil
	})
}

// MakeEverywhere makes path in every hierarchy: there the kubelet puts its pods.
func (h Hierarchies) MakeEverywhere(path string) error {
	return until(time.Second, func() error { return h.makeEverywhere(path) })
}

// weights are the files, of either version, by which a control group's share of the CPU is set, and what they get.
// Linux shares the CPU among control groups and sessions alike, so with the default all pods of all instances together
// would get as much as one program on a terminal.
var weights = map[string]string{"cpu.shares": "8192", "cpu.weight": "800"}

// favor gives all instances together eight times the default share of the CPU.
func (h Hierarchies) favor(path string) error {
	top, _, _ := strings.Cut(strings.Trim(path, "/"), "/")
	for _, mount := range h.all() {
		for file, weight := range weights {
			// Each hierarchy has one of the files at most.
			file, err := os.OpenFile(filepath.Join(mount, top, file), os.O_WRONLY, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				_, err = file.WriteString(weight)
				err = errors.Join(err, file.Close())
			}
			if err != nil {
				return fmt.Errorf("set the CPU share of control group %s: %w", top, err)
			}
		}
	}
	return nil
}

func (h Hierarchies) makeEverywhere(path string) error {
	for _, mount := range h.all() {
		dir := mount
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make control group %s: %w", dir, err)
			}
			if err := inheritCPUs(parent, dir); err != nil {
				return fmt.Errorf("make control group %s: %w", dir, err)
			}
		}
	}
	return h.favor(path)
}

// inheritCPUs fills the two files of a version 1 cpuset that start empty and
// keep every process out until they are filled.
func inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		data, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Processes are the ids of all processes in path and below it.
func (h Hierarchies) Processes(path string) []int {
	var pids []int
	for _, dir := range h.directories(path) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // the group went away meanwhile, and its processes with it
		}
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// directories are path and all below it in every hierarchy, children first.
func (h Hierarchies) directories(path string) []string {
	var dirs []string
	for _, mount := range h.all() {
		_ = filepath.WalkDir(filepath.Join(mount, path), func(dir string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, dir)
			}
			return nil
		})
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	return dirs
}

// Kill ends all processes in path and below it, and returns when they are gone.
func (h Hierarchies) Kill(path string) error {
	return until(15*time.Second, func() error {
		pids := h.Processes(path)
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if len(pids) > 0 {
			return fmt.Errorf("kill the processes in control group %s: %v are still there", path, pids)
		}
		return nil
	})
}

// Remove removes path and all below it from every hierarchy. The kernel holds a
// group for a moment after its last process has gone.
func (h Hierarchies) Remove(path string) error {
	return until(15*time.Second, func() error {
		var failed error
		for _, dir := range h.directories(path) {
			if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
				failed = fmt.Errorf("remove control group %s: %w", dir, err)
			}
		}
		return failed
	})
}

// RemoveEmptyParent removes the group that holds all instances once the last
// one is gone.
func (h Hierarchies) RemoveEmptyParent(path string) {
	for _, mount := range h.all() {
		_ = unix.Rmdir(filepath.Join(mount, filepath.Dir(path)))
	}
}

func until(limit time.Duration, done func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := done()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // polls: removing a group sends no event
	}
}
