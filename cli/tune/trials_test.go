package tune

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadTrials: a table that an attempt begins or ends with, lines about trials between, and nothing that programs write.
func TestReadTrials(t *testing.T) {
	const output = `gang: continues with 2 trials, of which 1 run again
trial  state      loss  x    opt    started               seconds  attempt  message
0      Succeeded  0.25  0.5  a, b   2026-11-30T17:20:31Z  41.2     1        -
1      Running    -     1    sgd    2026-11-30T17:20:31Z  -        1        -
gang: trial 1: x=1, opt=sgd
gang: trial 1: round 1 starts in 1 places
[1] loss=7
[1] gang: trial 0: failed
3      Failed     -     1    sgd    2026-11-30T17:20:31Z  -        1        forged
gang: trial 2: x=2, opt=adam
gang: trial 1: failed: worker/0 on pod-2: ended with exit code 1
gang: trial 2: pruned, loss=0.9: ended early, at step 3
gang: trial 3: x=3, opt=b, c
`
	names := []string{"x", "opt"}
	want := [][]string{
		{"0", "Succeeded", "0.25", "0.5", "a, b", ""},
		{"1", "Failed", "", "1", "sgd", "worker/0 on pod-2: ended with exit code 1"},
		{"2", "Pruned", "0.9", "2", "adam", "ended early, at step 3"},
		{"3", "Running", "", "3", "b, c", ""},
	}
	long := "[1] " + strings.Repeat("x", 3*mostLine) + "\n"
	for _, size := range []int{1, 7, 1 << 20} {
		found := newReader(names)
		for piece := range slices.Chunk([]byte(long+output+"gang: trial 3: rou"), size) {
			if n, err := found.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("write %d bytes: %d, %v", len(piece), n, err)
			}
			if len(found.line) > mostLine {
				t.Fatalf("it holds %d bytes of a line", len(found.line))
			}
		}
		if diff := cmp.Diff(want, rows(found.trials(), names)); diff != "" {
			t.Errorf("in pieces of %d bytes: %s", size, diff)
		}
	}
	if found := newReader(names).trials(); len(found) != 0 {
		t.Errorf("an output without trials has %v", found)
	}
}
