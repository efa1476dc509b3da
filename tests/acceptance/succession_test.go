package main

import (
	"errors"
	"testing"
)

func TestSuccession_ReadsWhatTestsSay(t *testing.T) {
	const output = "  leader_test.go:9: killed: led after 17s\n  x_test.go:9: 3 lines\n  modes_test.go:3: ended 1s after SIGTERM\n"
	got, err := succeeded(output, nil)
	if want := "killed: led after 17s; ended 1s after SIGTERM"; err != nil || got.Measured != want || !got.Kept {
		t.Errorf("%+v, %v, want %q", got, err, want)
	}
	if got, err := succeeded(output, errors.New("late")); err != nil || got.Kept {
		t.Errorf("a test that failed passed: %+v, %v", got, err)
	}
	if got, err := succeeded("", nil); err == nil {
		t.Errorf("nothing passed for times: %+v", got)
	}
}
