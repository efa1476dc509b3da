package service

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestFault_OfALateVersionIsItsTime: what was last in its way is in the text alone.
func TestFault_OfALateVersionIsItsTime(t *testing.T) {
	last := reason.Finding{Code: reason.ProxyFailing.Code, Text: "the proxy answers 503"}
	for cause, want := range map[upgrade.Cause]string{
		upgrade.Late:   reason.ServeNotHealthyInTime.Code,
		upgrade.Sick:   last.Code,
		upgrade.Failed: last.Code,
	} {
		if got := faultOf(text(), cause, last).Reason; got != want {
			t.Errorf("cause %v: reason %s, want %s", cause, got, want)
		}
	}
}

// TestFault_LeavesOneRemedy: that of the rollback, and for a late version how to give it more time.
func TestFault_LeavesOneRemedy(t *testing.T) {
	failed := reason.ApplicationFailed.Of("echo", "demo", "no module named app")
	const said = "application echo on ComputeCluster demo could not be deployed: no module named app"
	for cause, want := range map[upgrade.Cause]string{
		upgrade.Failed: said, upgrade.Late: "it was not healthy after 30m0s: " + said + ". Check what it waits for, or raise upgradeStrategy.healthyDeadlineSeconds",
	} {
		if have := faultOf(text(), cause, failed).Text; have != want {
			t.Errorf("%v: %q, want %q", cause, have, want)
		}
	}
}

// TestUpgradeWaitsForWhatANewOperatorHasYetToHear: an operator that has just started knows nothing of one version, and of
// the other what its head says and nothing of its proxies. Neither is a reason to move requests.
func TestUpgradeWaitsForWhatANewOperatorHasYetToHear(t *testing.T) {
	for _, c := range []struct {
		name              string
		active, candidate func(*Cluster)
	}{
		{"of neither version", unheardOf, unheardOf},
		{"of the candidate, and of the active one's proxies", unasked, unheardOf},
		{"of the proxies of both", unasked, unasked},
	} {
		s := upgrades(t, func(spec *v1beta1.ClusterServiceSpec) {
			spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Surge: &v1beta1.Surge{MaxSurgePercent: number(50), StepPercent: number(50), IntervalSeconds: number(1)}}
		})
		shift := &s.seen.Record.Shift
		shift.Traffic, shift.Active, shift.Candidate, shift.Proven = 50, 50, 50, true
		shift.At = at().Add(-time.Minute)
		half := 50.0
		for i, cluster := range s.seen.Clusters {
			cluster.Answer.Serving.Capacity = &half
			one := cluster.Answer.Serving.Applications["text"]
			one.Deployments = []headclient.Deployment{{Name: "D", Wanted: 1, Running: 1}}
			cluster.Answer.Serving.Applications["text"] = one
			cluster.Pods = cluster.Pods[:2] // the head and a worker
			cluster.Pods[1].Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
			cluster.Spec.WorkerGroups[0].Replicas = number(1)
			cluster.Annotations[v1beta1.AnnotationFullReplicas] = `{"cpu":2}`
			if i == 1 {
				c.active(cluster)
			} else {
				c.candidate(cluster)
			}
		}
		s.takes(&s.seen.Record.Active)
		s.takes(s.seen.Record.Candidate)
		for range 5 {
			if plan := s.decide(); plan.Record != nil {
				s.seen.Record = *plan.Record
			}
			if after := s.seen.Record.Shift; after.Traffic != 50 || after.Back || s.seen.Record.Failed != "" {
				t.Errorf("%s: %+v", c.name, after)
			}
		}
	}
}

func unheardOf(c *Cluster) { c.Heard, c.Answer = false, services.Answer{} }
func unasked(c *Cluster)   { c.Answer.Probes = nil }

// TestDoubt_SparesAVersionThatLostPods: a change was healthy for a moment, and then none of its proxies answers.
func TestDoubt_SparesAVersionThatLostPods(t *testing.T) {
	ends := func(status *corev1.PodStatus, since int64) {
		status.Conditions[0].Status = corev1.ConditionFalse
		ended := &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Unix(now-since, 0)}
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: v1beta1.ContainerRay, LastTerminationState: corev1.ContainerState{Terminated: ended}}}
	}
	for name, c := range map[string]struct {
		befalls func(*Cluster, *corev1.Pod)
		spared  bool
	}{
		"all pods are there": {func(*Cluster, *corev1.Pod) {}, false},
		"one is deleted":     {func(_ *Cluster, pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at()} }, true},
		"one is not ready":   {func(_ *Cluster, pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"one is gone":        {func(c *Cluster, _ *corev1.Pod) { c.Pods = c.Pods[:2] }, true},
		"one is gone, and an autoscaler says how many there are": {func(c *Cluster, _ *corev1.Pod) {
			c.Pods, c.Spec.Autoscaling = c.Pods[:2], &v1beta1.Autoscaling{}
		}, false},
		"one was evicted": {func(_ *Cluster, pod *corev1.Pod) {
			ends(&pod.Status, 5)
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
		}, true},
		"one ended by itself":                {func(_ *Cluster, pod *corev1.Pod) { ends(&pod.Status, 5) }, false},
		"one ended before, and is not ready": {func(_ *Cluster, pod *corev1.Pod) { ends(&pod.Status, 500) }, true},
	} {
		s := serves(t)
		active, cluster := &s.seen.Record.Active, s.seen.Clusters[1]
		s.service.Spec.ServeConfig = serveConfig("app:v2")
		active.Revision, active.At, active.Healthy = s.keep(t).ID, now-50, now-20
		s.takes(active)
		for _, pod := range cluster.Pods {
			cluster.answers(pod, false)
		}
		c.befalls(cluster, cluster.Pods[2])
		plan := s.decide()
		if plan.Record == nil || (plan.Record.Failed == "") != c.spared {
			t.Errorf("%s: %s", name, &plan)
			continue
		}
		if !c.spared {
			continue
		}
		s.seen.Record = *plan.Record
		for after, failed := range map[time.Duration]bool{1799 * time.Second: false, 1800 * time.Second: true} {
			later := s.decideAt(at().Add(after))
			if back := later.Record != nil && later.Record.Failed != ""; back != failed {
				t.Errorf("%s: %s later: %s", name, after, &later)
			}
		}
	}
}

// TestVersionThatNeverServed_HoldsNothingUp: a typo in the first image is mended whatever the strategy is.
func TestVersionThatNeverServed_HoldsNothingUp(t *testing.T) {
	for name, c := range map[string]struct {
		strategy    v1beta1.ServiceUpgradeType
		good, store bool
		want        string
	}{
		"None":                               {v1beta1.ServiceUpgradeNone, false, false, "another"},
		"None, and it served":                {v1beta1.ServiceUpgradeNone, true, false, "held"},
		"Surge":                              {v1beta1.ServiceUpgradeSurge, false, false, "another"},
		"InPlace":                            {v1beta1.ServiceUpgradeInPlace, false, false, "in place"},
		"InPlace that cannot be":             {v1beta1.ServiceUpgradeInPlace, false, true, "another"},
		"InPlace that cannot be, and served": {v1beta1.ServiceUpgradeInPlace, true, true, "held"},
	} {
		s := serves(t)
		s.service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Type: c.strategy}
		s.service.Spec.ClusterTemplate.Spec.Image = "ray:fixed"
		if c.store {
			s.service.Spec.ClusterTemplate.Spec.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
		}
		if !c.good {
			s.seen.Record.Active.Good = ""
		}
		plan, have := s.decide(), "held"
		switch {
		case plan.Record == nil:
		case plan.Record.Active.Cluster == 2 && len(plan.Record.Retiring) == 1:
			have = "another"
		case plan.Record.Active.Renewing != "":
			have = "in place"
		}
		if have != c.want {
			t.Errorf("%s: %s, want %s; %s", name, have, c.want, &plan)
		}
	}
}
