package live

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc, the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// CPUTime returns the processor time that a process has used, in user and kernel mode.
func CPUTime(process int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of %d: %w", process, err)
	}
	// The second field is the program's name in brackets, and may hold spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, i := range []int{11, 12} { // utime and stime are the 14th and 15th
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of %d: %w", process, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// ProcessMemory is what a process holds, in MiB: resident, of it anonymous (not files), and the
// most that was resident so far.
type ProcessMemory struct {
	Resident  float64 `json:"resident"`
	Anonymous float64 `json:"anonymous"`
	Peak      float64 `json:"peak"`
}

// MemoryOf returns the memory of a process.
func MemoryOf(process int) (m ProcessMemory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return m, fmt.Errorf("read the memory of %d: %w", process, err)
	}
	into := map[string]*float64{"VmRSS:": &m.Resident, "RssAnon:": &m.Anonymous, "VmHWM:": &m.Peak}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || into[fields[0]] == nil {
			continue
		}
		kib, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return m, fmt.Errorf("read the memory of %d: %w", process, err)
		}
		*into[fields[0]] = kib / 1024
	}
	return m, nil
}

// ProportionalMemory returns how many MiB a process holds, where what several processes share counts in equal parts. It works as
// root, or for one's own processes.
func ProportionalMemory(process int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", process))
	if err != nil {
		return 0, fmt.Errorf("read the memory of %d: %w", process, err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, fmt.Errorf("read the memory of %d: %w", process, err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("read the memory of %d: it has no Pss", process)
}
