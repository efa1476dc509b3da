package service

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

// shared is a situation in which the active version of two workers is told to have a share of its
// capacity, and Serve was seen to want one, in percent.
func shared(t *testing.T, capacity int, asked float64, state headclient.ApplicationState) (*situation, Health) {
	t.Helper()
	s := upgrades(t, nil)
	s.seen.Record.Shift = upgrade.Shift{Traffic: 50, Active: capacity, Candidate: 100, Proven: true, At: at(), Began: at()}
	cluster := s.seen.Clusters[1]
	cluster.Spec = *s.service.Spec.ClusterTemplate.Spec.DeepCopy()
	cluster.Answer.Serving.Capacity = &asked
	s.takes(&s.seen.Record.Active)
	return s, Health{Ready: 100, Applications: []v1beta1.ApplicationStatus{{Name: "text", State: string(state)}}}
}

// TestAShareOfTheWholeIsMeasured: more than what a version is told to have counts until its workers
// are gone, and no more than what its requests need while Serve changes what it wants.
func TestAShareOfTheWholeIsMeasured(t *testing.T) {
	const running, deploying = headclient.ApplicationRunning, headclient.ApplicationDeploying
	for name, c := range map[string]struct {
		capacity       int
		asked          float64
		state          headclient.ApplicationState
		workers, ready int
		share, want    int
	}{
		"the whole":                             {100, 100, running, 2, 100, 50, 100},
		"half":                                  {50, 50, running, 1, 100, 50, 50},
		"half, and its workers are there":       {50, 50, running, 2, 100, 50, 51},
		"half, which Serve has yet to want":     {50, 100, deploying, 2, 100, 50, 51},
		"half, its workers gone before":         {50, 100, deploying, 1, 100, 50, 50},
		"the whole, which Serve has yet to run": {100, 100, deploying, 2, 100, 50, 50},
		"no requests, and Serve changes":        {100, 100, deploying, 2, 100, 0, 1},
		"sick":                                  {50, 50, running, 2, 0, 50, 0},
	} {
		s, h := shared(t, c.capacity, c.asked, c.state)
		h.Ready = c.ready
		cluster := s.seen.Clusters[1]
		cluster.Pods = cluster.Pods[:1+c.workers] // the first is the head
		if got := measureCapacity(s.read().states().active, h, c.share); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestWorkersGoAfterTheirReplicas: Serve chooses on which workers it gives up replicas.
func TestWorkersGoAfterTheirReplicas(t *testing.T) {
	for _, c := range []struct {
		state headclient.ApplicationState
		taken bool
		want  int32
	}{{headclient.ApplicationRunning, true, 1}, {headclient.ApplicationDeploying, true, 2}, {headclient.ApplicationRunning, false, 2}} {
		s, h := shared(t, 50, 50, c.state)
		if !c.taken {
			s.seen.Record.Active.Taken = "what was asked before"
		}
		v := s.provisions(assessment{active: h})
		v.ensureCluster(v.states.active)
		replicas := s.seen.Clusters[1].Spec.WorkerGroups[0].Replicas
		for _, change := range v.change {
			replicas = change.Wanted.Spec.WorkerGroups[0].Replicas
		}
		if *replicas != c.want {
			t.Errorf("%s, taken %v: %d workers, want %d", c.state, c.taken, *replicas, c.want)
		}
	}
}
