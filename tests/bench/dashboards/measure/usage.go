package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// pidsOf returns those of a program and of its workers.
func pidsOf(p *beside.Process) ([]int, error) {
	pid := p.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, fmt.Errorf("list the workers of %s: %w", p.Path, err)
	}
	all := []int{pid}
	for _, one := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(one)
		if err != nil {
			return nil, fmt.Errorf("list the workers of %s: %w", p.Path, err)
		}
		all = append(all, child)
	}
	return all, nil
}

// memoryOf returns what a program holds with its workers, in MiB. What several of them share counts once.
func memoryOf(p *beside.Process) (float64, error) {
	pids, err := pidsOf(p)
	total := 0.0
	for _, pid := range pids {
		held, read := live.ProportionalMemory(pid)
		total, err = total+held, errors.Join(err, read)
	}
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.Path, err)
	}
	return total, nil
}

// filesOf returns how many files a program and its workers have open.
func filesOf(p *beside.Process) (int, error) {
	pids, err := pidsOf(p)
	count := 0
	for _, pid := range pids {
		found, read := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		count, err = count+len(found), errors.Join(err, read)
	}
	return count, err
}
