package job

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestStrandedPods_AreLeftBehind: they keep no retry and no suspension, and an event says what to do.
func TestStrandedPods_AreLeftBehind(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train-1-cpu-0"}, Spec: corev1.PodSpec{NodeName: "old"}}
	record := newRecord()
	record.Attempt, record.Own, record.Losses, record.Last = 2, 2, 1, binding(90000)
	record.Past = []Past{past(1, "HeadLost", 86400)}
	again := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 3, Scope: v1beta1.RetryCluster} }
	suspending := func(j *v1beta1.ClusterJob) { j.Spec.Suspend, j.Status.Phase = new(true), v1beta1.PhaseSuspending }
	for name, c := range map[string]struct {
		job     *v1beta1.ClusterJob
		remains int
		phase   string
		told    bool
	}{
		"a retry":                  {job: train(own, again, toldOf(1)), phase: v1beta1.PhaseProvisioning, told: true},
		"a suspension":             {job: train(own, again, suspending, toldOf(1)), phase: v1beta1.PhaseSuspended, told: true},
		"a retry, one may yet end": {job: train(own, again, toldOf(1)), remains: 1, phase: v1beta1.PhaseProvisioning},
	} {
		plan := Decide(c.job, Seen{Record: record, Remains: c.remains, Stranded: []*corev1.Pod{pod}}, now)
		told := false
		for _, event := range plan.Events {
			told = told || strings.Contains(event.Finding.Text, "pod train-1-cpu-0 of ComputeCluster demo is left behind on node old, which does not answer") &&
				strings.Contains(event.Finding.Text, "kubectl taint node old node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
		}
		if goes := plan.Finding.Code != "ClusterEnding"; plan.Phase != c.phase || told != c.told || goes != c.told {
			t.Errorf("%s: %s %s, events %v", name, plan.Phase, plan.Finding.Code, plan.Events)
		}
	}
}
