package byhand

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

var jobsOut = flag.String("jobs-out", "", "file for the samples of jobs, as JSON")

func TestAJobOnItsOwnClusterTakesLittleLongerThanByHand(t *testing.T) {
	kubernetes, err := live.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Install(t.Context(), "../../.."); err != nil {
		t.Fatal(err)
	}
	prepare(t, kubernetes)
	b := &bench{Cluster: kubernetes}
	var all []JobRound
	for range *rounds {
		round, err := b.jobRound(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("by hand %5.2f s    ClusterJob %5.2f s", round.ByHand, round.Operator)
		all = append(all, round)
	}
	if *jobsOut != "" {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*jobsOut, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := SummariseJobs(all)
	t.Logf("medians of %d: by hand %.2f s, ClusterJob %.2f s, ratio %.2f", len(all), m.ByHand, m.Operator, m.Ratio())
	if len(all) >= judgedRounds && m.Ratio() > PromisedJobRatio {
		t.Errorf("a ClusterJob took %.2f times as long as by hand, promised is at most %.2f", m.Ratio(), PromisedJobRatio)
	}
}
