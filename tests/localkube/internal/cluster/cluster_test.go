package cluster

import (
	"path/filepath"
	"testing"
)

func TestIsHeld_KeepsInstancesOfOtherCheckouts(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	for name, c := range map[string]struct {
		owner, asks  string
		runs, isHeld bool
	}{
		"its own":               {mine, mine, true, false},
		"another's":             {theirs, mine, true, true},
		"another's that is off": {theirs, mine, false, false},
		"one that was removed":  {filepath.Join(theirs, "gone"), mine, true, false},
		"nobody's":              {"", mine, true, false},
		"outside of any":        {theirs, "", true, false},
	} {
		if isHeld(c.owner, c.asks, c.runs) != c.isHeld {
			t.Errorf("%s: it is held: %v", name, !c.isHeld)
		}
	}
}
