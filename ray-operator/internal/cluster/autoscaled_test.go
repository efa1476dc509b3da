package cluster_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
)

// TestDecide_TakesWorkersOnlyWhileTheStreamIsUp: by the time that it breaks, they may work again.
func TestDecide_TakesWorkersOnlyWhileTheStreamIsUp(t *testing.T) {
	for name, test := range map[string]struct {
		heard, connected bool
		want             int
	}{
		"connected takes one":        {true, true, 1},
		"a broken stream takes none": {true, false, 0},
		"one never heard takes none": {false, true, 0},
	} {
		plan := decide(elastic(), given(1, func(s *cluster.Seen) {
			s.Record.Scaled = map[string]cluster.Held{"cpu": {2}}
			s.Scaler = cluster.Scaler{Heard: test.heard, Connected: test.connected, Word: scalelink.Word{
				Targets: []scalelink.Target{{Group: "cpu", Replicas: 1}},
				Leaving: []scalelink.Leaver{{Pod: string(s.Pods[2].UID), Node: "00", Drained: true}},
			}}
		}))
		if len(plan.Delete) != test.want {
			t.Errorf("%s: it takes %d: %s", name, len(plan.Delete), plan)
		}
	}
}
