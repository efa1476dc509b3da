package live_test

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestWhatCrashesShowed(t *testing.T) {
	histogram := make([]int64, len(loadgen.Bounds())+1)
	histogram[0], histogram[len(histogram)-1] = 7, 2
	c := live.Crashed{
		Changes: 4, Crashes: 6, Seconds: 12, Steps: map[string]map[int]int{"image": {1: 1, 2: 2, 3: 1, 9: 1}, "code": {4: 1}},
		Load: loadgen.Phase{Sorts: map[loadgen.Sort]loadgen.Count{
			loadgen.Fresh: {Sent: 9, Failed: 1, Latency: loadgen.Latency{P50: 1.5, P999: 20, Max: 31, Histogram: histogram}}, loadgen.Kept: {Sent: 1},
		}},
	}
	want := "10 requests in 4 upgrades, the operator killed 6 times: 1 lost, in 12 s; fresh: half below 1.5 ms, 999 of 1000 below 20 ms, the longest 31 ms; kept: "
	if have := c.String(); !strings.HasPrefix(have, want) {
		t.Errorf("it says %q, want %q", have, want)
	}
	table := c.Table()
	for _, line := range []string{"| image | 1 to 3, 9 | 5 |", "| code | 4 | 1 |", "| fresh | 9 | 1 | 7 | 0 |", "≤ 10000 ms | more |", " 0 | 2 |\n"} {
		if !strings.Contains(table, line) {
			t.Errorf("%q is missing in\n%s", line, table)
		}
	}
}
