package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/archives"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// withHistory is an installation with history.
func withHistory(keep v1beta1.HistoryKeep) desired.Site {
	return desired.Site{Installed: pod.Installed{History: &pod.History{
		Keep: keep, Authority: "PEM", Archivers: []string{"a:8444", "b:8444"}, MaxKeepFor: metav1.Duration{Duration: 3 * time.Hour},
	}}}
}

// collecting has each pod run a collector since a time.
func collecting(since time.Time) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		for _, p := range s.Pods {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: v1beta1.ContainerHistory})
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: v1beta1.ContainerHistory, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
			})
		}
	}
}

// toldOfHistory is the condition after a pass over what was seen.
func toldOfHistory(of *v1beta1.ComputeCluster, seen cluster.Seen, site desired.Site) (*metav1.Condition, cluster.Plan) {
	plan := cluster.Decide(of, seen, site, now)
	return meta.FindStatusCondition(cluster.Status(of, seen, plan, cluster.Outcome{}, now).Conditions, v1beta1.ConditionHistoryReady), plan
}

// TestStatus_TellsOfHistory has a row for each reason, and for what outranks what.
func TestStatus_TellsOfHistory(t *testing.T) {
	long := now.Add(-time.Hour)
	streaming := func(s *cluster.Seen) archives.State {
		state := archives.State{All: long, Streams: map[types.UID]time.Time{}}
		for _, p := range s.Pods {
			state.Streams[p.UID] = time.Time{}
		}
		return state
	}
	for name, row := range map[string]struct {
		site  desired.Site
		spec  *v1beta1.History
		since time.Time // zero is without collectors
		state func(*archives.State)
		want  string // empty is no condition
	}{
		"nobody asks":             {site: desired.Site{}, since: time.Time{}, want: ""},
		"asked for, not there":    {site: desired.Site{}, spec: &v1beta1.History{}, want: reason.HistoryOff.Code},
		"all streams":             {site: withHistory(v1beta1.HistoryOutputs), since: long, want: reason.HistoryKept.Code},
		"records alone":           {site: withHistory(v1beta1.HistoryRecords), want: reason.HistoryKept.Code},
		"records by its spec":     {site: withHistory(v1beta1.HistoryOutputs), spec: &v1beta1.History{Keep: v1beta1.HistoryRecords}, want: reason.HistoryKept.Code},
		"pods from before":        {site: withHistory(v1beta1.HistoryOutputs), want: reason.HistoryPartly.Code},
		"no stream for a minute":  {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { clear(s.Streams) }, want: reason.HistoryBlocked.Code},
		"a collector that begins": {site: withHistory(v1beta1.HistoryOutputs), since: now.Add(-59 * time.Second), state: func(s *archives.State) { clear(s.Streams) }, want: reason.HistoryKept.Code},
		"who asks since a moment": {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { clear(s.Streams); s.All = now }, want: reason.HistoryKept.Code},
		"one replica is away":     {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { clear(s.Streams); s.All = time.Time{} }, want: ""},
		"all are away":            {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { s.All, s.Away = time.Time{}, long }, want: reason.HistoryBehind.Code},
		"the store is away":       {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { s.Cause = "Store" }, want: reason.HistoryBehind.Code},
		"bytes were displaced":    {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { s.Displaced = 5 }, want: reason.HistoryLimited.Code},
		"behind before displaced": {site: withHistory(v1beta1.HistoryOutputs), since: long, state: func(s *archives.State) { s.Cause, s.Displaced = "Rate", 5 }, want: reason.HistoryBehind.Code},
	} {
		of := demo()
		of.Spec.History = row.spec
		seen := given(1, func(s *cluster.Seen) {
			if !row.since.IsZero() {
				collecting(row.since)(s)
			}
			s.Archive = streaming(s)
			if row.state != nil {
				row.state(&s.Archive)
			}
		})
		condition, plan := toldOfHistory(of, seen, row.site)
		switch {
		case condition == nil && row.want != "" || condition != nil && condition.Reason != row.want:
			t.Errorf("%s: it tells %+v, want %q", name, condition, row.want)
		case condition != nil && (condition.Status == metav1.ConditionTrue) != (row.want == reason.HistoryKept.Code):
			t.Errorf("%s: it is %s", name, condition.Status)
		}
		if name == "a collector that begins" && (plan.Wake == 0 || plan.Wake > time.Second) {
			t.Errorf("%s: it looks again after %s", name, plan.Wake)
		}
	}
}

// TestStatus_RefusesKeepFor: an installation's maximum that was lowered stalls nobody.
func TestStatus_RefusesKeepFor(t *testing.T) {
	of := demo()
	for keepFor, refused := range map[time.Duration]bool{3 * time.Hour: false, 4 * time.Hour: true} {
		of.Spec.History = &v1beta1.History{KeepFor: &metav1.Duration{Duration: keepFor}}
		plan := cluster.Decide(of, given(1), withHistory(v1beta1.HistoryOutputs), now)
		if (plan.Refused != nil) != refused || plan.Stalled != nil {
			t.Errorf("for %s it refuses %v, and stalls by %v", keepFor, plan.Refused, plan.Stalled)
		}
	}
}

// TestDecide_LeavesCollectorsTime: what ends at once has 15 s where a collector has to send the rest.
func TestDecide_LeavesCollectorsTime(t *testing.T) {
	of := demo()
	of.Spec.Suspend = new(true)
	for name, row := range map[string]struct {
		with func(*cluster.Seen)
		want int64
	}{"without a collector": {func(*cluster.Seen) {}, 5}, "with one": {collecting(now), 15}} {
		plan := cluster.Decide(of, given(1, row.with), withHistory(v1beta1.HistoryOutputs), now)
		if len(plan.Delete) == 0 {
			t.Fatalf("%s: it deletes nothing", name)
		}
		for _, removal := range plan.Delete {
			if removal.GraceSeconds == nil || *removal.GraceSeconds != row.want {
				t.Errorf("%s: %s has %v s", name, removal.Pod.Name, removal.GraceSeconds)
			}
		}
	}
}
