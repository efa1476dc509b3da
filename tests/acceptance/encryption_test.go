package main

import (
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestCompared_JudgesByMedians(t *testing.T) {
	speeds := func(tasks, objects float64) []live.Speed {
		return []live.Speed{{Tasks: tasks, Objects: objects}, {Tasks: 1e9, Objects: 1e9}, {}}
	}
	for name, test := range map[string]struct {
		tasks, objects float64
		kept           bool
	}{
		"as promised":  {50, 25, true},
		"slow tasks":   {49, 100, false},
		"slow objects": {100, 24, false},
	} {
		outcome, err := compared([]live.EncryptionCost{{Plain: speeds(100, 100), Encrypted: speeds(test.tasks, test.objects)}})
		if err != nil || outcome.Kept != test.kept {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
	}
	if _, err := compared(nil); err == nil {
		t.Error("nothing measured is judged")
	}
}
