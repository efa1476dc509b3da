// Package process is what the small programs in pods of clusters share: memory and ports beside the code of users.
//
// In: what the kernel says of the container; an address, a clock and a log. Out: settings of Go's garbage collector; a
// listener, as soon as nobody else has the port.
//
// It must never limit the memory that a process needs: beyond the soft limit Go collects more often, and goes on. It must
// never give up because a port is taken: while the process was away, the code of users could take it. A process that ended
// would wait for longer each time before the kubelet starts it again, and for minutes in the end.
package process

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// usual is the memory of a container that has no limit of its own, or where the kernel does not say so.
const usual = 64 << 20

// FitMemory has Go collect its garbage before what the container has left over is used up.
func FitMemory() {
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
