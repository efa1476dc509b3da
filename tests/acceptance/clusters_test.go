package main

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestTimesAreJudgedByTheLongest(t *testing.T) {
	for _, c := range []struct {
		told     []string
		measured string
		kept     bool
	}{
		{[]string{"1.5 s", "9.9 s"}, "2 times, 1.5 to 9.9 s", true},
		{[]string{"10.1 s", "2.0 s"}, "2 times, 2.0 to 10.1 s", false},
	} {
		if got, err := judge(c.told, 10*time.Second); err != nil || got.Measured != c.measured || got.Kept != c.kept {
			t.Errorf("%v: %+v, %v", c.told, got, err)
		}
	}
	for _, none := range [][]string{nil, {"soon"}} {
		if got, err := judge(none, time.Second); err == nil {
			t.Errorf("%v passed for times: %+v", none, got)
		}
	}
}

func TestALostTaskBreaksAPromise(t *testing.T) {
	good := live.Roll{Done: 30, Pods: []string{"a", "b"}, Seconds: 10}
	bad := good
	bad.Lost = 1
	if got, err := count([]live.Roll{good, good}); err != nil || !got.Kept || got.Measured != "2 times, 60 tasks done, 0 lost" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := count([]live.Roll{good, bad}); err != nil || got.Kept {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := count(nil); err == nil {
		t.Errorf("nothing passed for a roll: %+v", got)
	}
}
