package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PodCPU returns how many CPU-seconds a pod has used, by its UID. The variable LOCALKUBE_CPU_STAT names the file cpu.stat of
// the control group of its local Kubernetes.
func PodCPU(uid string) (float64, error) {
	var found []string
	for _, class := range []string{"", "*/"} { // a guaranteed pod is of no class
		files, err := filepath.Glob(filepath.Dir(os.Getenv("LOCALKUBE_CPU_STAT")) + "/pods/*/kubepods/" + class + "pod" + uid + "/cpu.stat")
		if err != nil {
			return 0, fmt.Errorf("find the control group of pod %s: %w", uid, err)
		}
		found = append(found, files...)
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("find the control group of pod %s: there are %d: %w", uid, len(found), errNotThere)
	}
	return CPUSeconds(found[0])
}

// CPUSeconds reads how many CPU-seconds a control group has used from its file cpu.stat.
func CPUSeconds(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if count, found := strings.CutPrefix(line, "usage_usec "); found {
			microseconds, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time: %w", err)
			}
			return microseconds / 1e6, nil
		}
	}
	return 0, fmt.Errorf("read the CPU time: %s has no usage_usec", file)
}
