package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestExplain_PodsThatLeave: half a minute after its time is what a pod may take.
func TestExplain_PodsThatLeave(t *testing.T) {
	cluster := clusterOf("demo", unready(reason.HeadMissing.Of()))
	pod := starting(podOf(cluster, "demo-head", ""))
	pod.DeletionTimestamp = new(at(10))
	for after, want := range map[time.Duration]int{30*time.Second - 1: 1, 30 * time.Second: 2} {
		chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: at(10).Add(after)})
		if len(chain) != want || want == 2 && !chain[1].Since.Equal(at(10).Time) {
			t.Errorf("after %s: %v", after, lines(chain))
		}
	}
}

// TestExplain_Attempts: of a job's last attempt what is not told yet.
func TestExplain_Attempts(t *testing.T) {
	lost := v1beta1.JobAttempt{Reason: "DriverLost", Message: "x", EndTime: new(at(7))}
	for name, test := range map[string]struct {
		ready   metav1.Condition
		attempt v1beta1.JobAttempt
		want    int
	}{
		"why it ended":                 {unready(reason.Retrying.Of(1, "DriverLost", "10:00")), lost, 2},
		"not twice":                    {unready(reason.DriverLost.Of("y")), lost, 1},
		"not of a job that succeeded":  {isReady(reason.JobSucceeded.Of(2)), lost, 1},
		"not without words":            {unready(reason.Retrying.Of(1, "DriverLost", "10:00")), v1beta1.JobAttempt{Reason: "DriverLost"}, 1},
		"not what is no trouble":       {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{Reason: "JobRunning", Message: "x"}, 1},
		"nothing of one that goes on":  {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{}, 1},
		"the code without a catalogue": {unready(reason.JobRunning.Of(1, "demo")), v1beta1.JobAttempt{Reason: "Unheard", Message: "x"}, 2},
	} {
		job := jobOf("train", test.ready)
		job.Status.Attempts = []v1beta1.JobAttempt{{Reason: "ClusterGone", Message: "a former one"}, test.attempt}
		chain := explain.Explain(explain.Input{Object: job, Now: now})
		if len(chain) != test.want {
			t.Errorf("%s: %v", name, lines(chain))
		} else if test.want == 2 && (chain[1].Code != test.attempt.Reason || test.attempt.EndTime != nil && !chain[1].Since.Equal(at(7).Time)) {
			t.Errorf("%s: %+v", name, chain[1])
		}
	}
}

// TestExplain_Notes: what a condition warns of is told after the headline, of every kind; what is fine, or on its way, not.
func TestExplain_Notes(t *testing.T) {
	warning, progress := reason.StoreFull.Of("a", "b"), reason.WorkersStarting.Of(0, 1)
	for _, kind := range []string{
		v1beta1.ConditionNameConflict, v1beta1.ConditionInvalidSpec, v1beta1.ConditionHeadReady, v1beta1.ConditionControlStoreReady,
		v1beta1.ConditionWorkersReady,
		v1beta1.ConditionVersionMismatch, v1beta1.ConditionAutoscaling, v1beta1.ConditionUpToDate, v1beta1.ConditionRolledBack,
		v1beta1.ConditionUpgrading, v1beta1.ConditionGatewayProgrammed, v1beta1.ConditionSuspended,
	} {
		for finding, want := range map[reason.Finding]int{warning: 2, progress: 1, allReady: 1, {}: 1} {
			condition := condition(kind, metav1.ConditionFalse, finding, 1)
			for _, object := range []runtime.Object{
				clusterOf("a", unready(crash), condition), jobOf("a", unready(crash), condition), serviceOf("a", unready(crash), condition),
			} {
				chain := explain.Explain(explain.Input{Object: object, Now: now})
				if len(chain) != want || want == 2 && chain[1].Code != warning.Code {
					t.Errorf("%T, %s %s: %v", object, kind, finding.Code, lines(chain))
				}
			}
		}
	}
}

// TestExplain_EndedJobs: a job that came to its end waits for no cluster.
func TestExplain_EndedJobs(t *testing.T) {
	cluster := clusterOf("demo", unready(crash))
	for name, test := range map[string]struct {
		condition metav1.Condition
		want      int
	}{
		"complete":     {condition(v1beta1.ConditionComplete, metav1.ConditionTrue, allReady, 1), 1},
		"failed":       {condition(v1beta1.ConditionFailed, metav1.ConditionTrue, crash, 1), 1},
		"not complete": {condition(v1beta1.ConditionComplete, metav1.ConditionFalse, allReady, 1), 2},
		"not failed":   {condition(v1beta1.ConditionFailed, metav1.ConditionFalse, crash, 1), 2},
		"another one":  {condition(v1beta1.ConditionReconciling, metav1.ConditionTrue, crash, 1), 2},
	} {
		job := jobOf("train", unready(reason.JobRunning.Of(1, "demo")), test.condition)
		job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
		chain := explain.Explain(explain.Input{Object: job, Clusters: []*v1beta1.ComputeCluster{cluster}, Now: now})
		if len(chain) != test.want {
			t.Errorf("%s: %v", name, lines(chain))
		}
	}
}

// TestExplain_OrderOfClusters: the version that serves comes before the one on its way, and before what is only owned.
func TestExplain_OrderOfClusters(t *testing.T) {
	service := serviceOf("serve", unready(reason.ServeSilent.Of("a", "b", "c")))
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "z"}
	service.Status.Candidate = &v1beta1.ServiceVersion{ClusterName: "y"}
	var clusters []*v1beta1.ComputeCluster
	for _, name := range []string{"b", "a", "y", "z", "foreign"} {
		cluster := clusterOf(name, unready(crash))
		if name != "foreign" {
			cluster.OwnerReferences = []metav1.OwnerReference{{UID: service.UID, Controller: new(true)}}
		}
		clusters = append(clusters, cluster)
	}
	notOwner := clusterOf("c", unready(crash))
	notOwner.OwnerReferences = []metav1.OwnerReference{{UID: service.UID, Controller: new(false)}, {UID: service.UID}}
	chain := explain.Explain(explain.Input{Object: service, Clusters: append(clusters, notOwner), Now: now})
	var names []string
	for _, cause := range chain[1:] {
		names = append(names, cause.Name)
	}
	if diff := cmp.Diff([]string{"z", "y", "a", "b"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestExplain_UsedClusters: of a ready cluster what its autoscaler cannot make is told, and else nothing.
func TestExplain_UsedClusters(t *testing.T) {
	job := jobOf("train", unready(reason.JobPending.Of("x")))
	job.Status.ClusterName = "demo"
	cluster := clusterOf("demo", isReady(allReady),
		condition(v1beta1.ConditionAutoscaling, metav1.ConditionTrue, reason.Infeasible.Of("1 × GPU"), 1),
		condition(v1beta1.ConditionUpToDate, metav1.ConditionFalse, reason.PodsOutdated.Of(1, 2, "x"), 1))
	chain := explain.Explain(explain.Input{Object: job, Clusters: []*v1beta1.ComputeCluster{cluster}, Now: now})
	if len(chain) != 2 || chain[1].Code != reason.Infeasible.Code || chain[1].Name != "demo" {
		t.Error(lines(chain))
	}
}

// TestHeadline_IsCut: a text of 4 KiB stays, and one that is longer ends with an ellipsis and no half character.
func TestHeadline_IsCut(t *testing.T) {
	const most = 4 << 10
	for name, test := range map[string]struct{ text, want string }{
		"one that fits":   {strings.Repeat("x", most), strings.Repeat("x", most)},
		"one that is cut": {strings.Repeat("x", most+1), strings.Repeat("x", most-3) + "…"},
		"half characters": {strings.Repeat("x", most-4) + "世界", strings.Repeat("x", most-4) + "…"},
		"what is none":    {"a\xffb", "a�b"},
	} {
		have := explain.Headline(clusterOf("demo", unready(reason.Finding{Code: "Unheard", Text: test.text})))
		if have.Message != test.want {
			t.Errorf("%s: %d bytes, %q", name, len(have.Message), have.Message[max(0, len(have.Message)-20):])
		}
	}
}
