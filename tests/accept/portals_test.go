package main

import (
	"errors"
	"testing"
)

func TestSaidBy_CountsWhatTestsSaid(t *testing.T) {
	output := "    a_test.go:1: 3000 decisions, answers by code: map[200:5]\n    b_test.go:2: 3000 decisions, answers by code: map[403:7]\n"
	outcome, err := saidBy(output, answersByCode, 2, nil)
	if want := "3000 decisions, answers by code: map[200:5]; 3000 decisions, answers by code: map[403:7]"; err != nil || outcome.Measured != want || !outcome.Kept {
		t.Errorf("it is %+v (%v)", outcome, err)
	}
	if outcome, err := saidBy(output, answersByCode, 2, errors.New("failed")); err != nil || outcome.Kept {
		t.Errorf("a test that failed is %+v (%v)", outcome, err)
	}
	if _, err := saidBy(output, answersByCode, 3, nil); err == nil {
		t.Error("a test that said nothing is taken")
	}
}
