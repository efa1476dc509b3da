package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCountPoints(t *testing.T) {
	told, failures, err := countPoints(strings.NewReader(`{"Action":"run","Test":"TestSize"}
{"Action":"output","Test":"TestSize","Output":"    scenario.go:44: points of disturbance run: 12 of 30\n"}
{"Action":"output","Test":"TestIdle","Output":"    scenario.go:44: points of disturbance run: 7 of 7\n"}
{"Action":"fail","Test":"TestIdle"}
`))
	if want := []stories{{"TestSize", 12, 30}, {"TestIdle", 7, 7}}; err != nil || failures != 1 || !slices.Equal(told, want) {
		t.Errorf("%v, %d failures, %v; want %v and 1 failure", told, failures, err, want)
	}
	if _, _, err := countPoints(strings.NewReader("no JSON")); err == nil {
		t.Error("what is no JSON was read")
	}
}
