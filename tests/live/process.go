package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process finds the process of a program in a control group whose path has a part, such as
// the UID of a pod, and gives its id. It works for pods and programs of a local Kubernetes on
// this machine, as root. The error tells where there is none, or more than one.
func Process(program, part string) (int, error) {
	found, err := processes(program, part)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("find %s in a control group with %s: %d processes are it: %w", program, part, len(found), errNotThere)
	}
	return found[0], nil
}

// HasProcess reports whether there is a process of a program in a control group whose path has a
// part. It works where Process does.
func HasProcess(program, part string) (bool, error) {
	found, err := processes(program, part)
	return len(found) > 0, err
}

func processes(program, part string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []int
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(name)) != program {
			continue // a process that ended meanwhile is not the one
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || !strings.Contains(string(groups), part) {
			continue
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, id)
		}
	}
	return found, nil
}

var errNotThere = errors.New("run the tests as root on the machine that localkube runs on, for example by make e2e")
