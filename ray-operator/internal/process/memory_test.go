package process

import (
	"math"
	"os"
	"testing"
)

func TestSoftLimit_FollowsTheContainers(t *testing.T) {
	const otherwise = 48 << 20
	for text, want := range map[string]int64{
		"134217728\n": 96 << 20, "max\n": math.MaxInt64, "none": otherwise, "-1": otherwise, "": otherwise,
	} {
		if got := softLimit([]byte(text), nil); got != want {
			t.Errorf("of %q %d", text, got)
		}
	}
	if got := softLimit(nil, os.ErrNotExist); got != otherwise {
		t.Errorf("of no file %d", got)
	}
}
