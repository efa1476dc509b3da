package main

import "testing"

// TestJudgeDecision: the time of the large cluster is judged, and no other.
func TestJudgeDecision(t *testing.T) {
	const others = `{"name": "500 nodes, 3000 pending", "seconds": 9}`
	for text, kept := range map[string]bool{
		`[` + others + `, {"name": "2000 nodes, 10000 pending, 50 shapes, 100 gangs", "seconds": 0.1}]`:   true,
		`[` + others + `, {"name": "2000 nodes, 10000 pending, 50 shapes, 100 gangs", "seconds": 0.101}]`: false,
	} {
		if outcome, err := judgeDecision([]byte(text)); err != nil || outcome.Kept != kept || outcome.Measured == "" {
			t.Errorf("%s: %+v, %v", text, outcome, err)
		}
	}
	if _, err := judgeDecision([]byte("[" + others + "]")); err == nil {
		t.Error("what measured no large cluster passed for an outcome")
	}
}
