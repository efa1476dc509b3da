package services

import (
	"slices"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func retried(c *Config) { c.Retry = true }

// TestRetries_AreDueAfterGrowingPauses that count from when the failure was seen.
func TestRetries_AreDueAfterGrowingPauses(t *testing.T) {
	const failed, deploying, runs = headclient.ApplicationDeployFailed, headclient.ApplicationDeploying, headclient.ApplicationRunning
	type look struct {
		second int
		state  headclient.ApplicationState
	}
	for name, c := range map[string]struct {
		config *Config
		looks  []look
		want   []int // the seconds at which it is deployed again
	}{
		"twice as long each time": {
			config: changed(config("d", "a"), retried),
			looks:  []look{{0, failed}, {29, failed}, {30, failed}, {31, failed}, {90, failed}, {91, failed}, {92, failed}, {211, failed}, {212, failed}},
			want:   []int{30, 91, 212},
		},
		"not while it is on its way": {
			config: changed(config("d", "a"), retried),
			looks:  []look{{0, failed}, {30, failed}, {31, deploying}, {300, deploying}, {301, failed}, {360, failed}, {361, failed}},
			want:   []int{30, 361},
		},
		"from the beginning once all ran": {
			config: changed(config("d", "a"), retried),
			looks:  []look{{0, failed}, {30, failed}, {31, runs}, {100, failed}, {129, failed}, {130, failed}},
			want:   []int{30, 130},
		},
		"never what may be rolled back": {config: config("d", "a"), looks: []look{{0, failed}, {3600, failed}}},
	} {
		var r retries
		var have []int
		for _, look := range c.looks {
			there := shown(headclient.Application{Name: "a", State: look.state})
			if r.isDue(c.config, there, time.Unix(int64(look.second), 0)) {
				have = append(have, look.second)
				r.note()
			}
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: deployed again at %d, want %d", name, have, c.want)
		}
	}
}

// TestRetries_HaveAnEndOfGrowth after a quarter of an hour.
func TestRetries_HaveAnEndOfGrowth(t *testing.T) {
	r := retries{count: 1000}
	r.isDue(changed(config("d", "a"), retried), shown(headclient.Application{Name: "a", State: headclient.ApplicationDeployFailed}), time.Unix(0, 0))
	if pause := r.at.Sub(time.Unix(0, 0)); pause != 15*time.Minute {
		t.Errorf("the pause is %s", pause)
	}
}

// TestFailedDeployment_IsSentAgain until it runs, and the answer says when.
func TestFailedDeployment_IsSentAgain(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		fail := func(s *headclient.Serving) {
			s.Applications["a"] = but(s.Applications["a"], func(a *headclient.Application) { a.State = headclient.ApplicationDeployFailed })
		}
		head.set(func(s *scripted) { s.more = fail })
		b.Want(cluster, wanted(changed(config("d1", "a"), retried, alone)))
		b.Pass(20 * time.Second)
		if at := b.last().RetryAt; len(head.puts) != 1 || at.IsZero() || time.Until(at) > firstRetry {
			t.Errorf("deployed %d times, and next at %s", len(head.puts), at)
		}
		b.Pass(20 * time.Second)
		if len(head.puts) != 2 || b.last().Taken != "d1" {
			t.Errorf("deployed %d times: %+v", len(head.puts), b.last().Outcome)
		}
		head.set(func(s *scripted) { s.more = nil })
		b.Pass(10 * time.Minute)
		if at := b.last().RetryAt; len(head.puts) != 2 || !at.IsZero() {
			t.Errorf("deployed %d times, and next at %s", len(head.puts), at)
		}
	})
}
