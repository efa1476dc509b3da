// Package memory keeps a small process within the memory of its container.
//
// In: what the kernel says of the container. Out: settings of Go's garbage collector.
//
// It must never limit what a process needs: beyond the soft limit Go collects more often, and goes on.
package memory

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// usual is the memory of a container that has no limit of its own, or where the kernel does not say so.
const usual = 64 << 20

// Fit has Go collect its garbage before what the container has left over is used up.
func Fit() {
	debug.SetMemoryLimit(softLimit(os.ReadFile("/sys/fs/cgroup/memory.max")))
	debug.SetGCPercent(50)
}

// softLimit returns the memory up to which Go need not hurry: three quarters of what the container may use, which the
// kernel says as text.
func softLimit(limit []byte, err error) int64 {
	text := strings.TrimSpace(string(limit))
	most, parsed := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && text == "max":
		return math.MaxInt64
	case err != nil || parsed != nil || most <= 0:
		most = usual
	}
	return most / 4 * 3
}
