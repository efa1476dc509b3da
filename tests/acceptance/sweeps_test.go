package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestSweepsAreJudged(t *testing.T) {
	good := live.Sweeps{
		Clusters: sweptClusters, NewHead: []float64{1}, Gone: []float64{6}, AwayGone: 9, KeysGone: 20, StrippedGone: 9, DroppedGone: 15, Recorded: sweptClusters,
	}
	few, late := good, good
	few.Clusters, few.Recorded = 10, 10
	late.KeysGone = 61
	for name, c := range map[string]struct {
		told   live.Sweeps
		failed error
		kept   bool
		says   string
	}{
		"all kept":    {good, nil, true, "their keys 20.0 s after it was back"},
		"too few":     {few, nil, false, "too few clusters"},
		"late":        {late, nil, false, "keys went late"},
		"test failed": {good, errors.New("exit status 1"), false, "exit status 1"},
	} {
		if got, err := sweptAway(encoded(c.told), c.failed); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v: want %v and %q", name, got, err, c.kept, c.says)
		}
	}
	if got, err := sweptAway(json.RawMessage("no JSON"), nil); err == nil {
		t.Errorf("what is no JSON passed for figures: %+v", got)
	}
}
