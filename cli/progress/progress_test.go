package progress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/cli/progress"
)

func TestLine_IsOnePerChangeInAPipe(t *testing.T) {
	var out strings.Builder
	line := progress.New(&out, nil)
	for i, state := range []string{"a", "a", "b", "a"} {
		line.Show(state, time.Duration(i)*time.Second)
	}
	line.Close()
	if want := "   0s  a\n   2s  b\n   3s  a\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}

func TestLine_IsWrittenOverOnATerminal(t *testing.T) {
	var out strings.Builder
	width := 12
	line := progress.New(&out, func() int { return width })
	line.Show("Ωmega and more", 0)
	line.Show("b", 61*time.Second)
	width = 0
	line.Show("unknown width", 0)
	line.Close()
	line.Close()
	const clear = "\r\x1b[K"
	if want := clear + "   0s  Ωme…" + clear + " 1m1s  b" + clear + "   0s  unknown width" + clear; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}
