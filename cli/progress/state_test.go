package progress_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/cli/progress"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestState_SaysWhatHelps: the remedy is of what the line says that a phase waits for.
func TestState_SaysWhatHelps(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, found reason.Finding) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: found.Code, Message: found.Text}}
	}
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}}
	cluster.Spec.Suspend = new(true)
	cluster.Status.Phase = v1beta1.PhaseSuspended
	cluster.Status.Conditions = condition(v1beta1.ConditionSuspended, metav1.ConditionTrue, reason.SuspendedBySpec.Of())
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
	job.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "demo"}
	job.Status.Phase = v1beta1.PhasePending
	job.Status.Conditions = condition(v1beta1.ConditionReady, metav1.ConditionFalse, reason.ClusterSuspended.Of("demo"))
	said := progress.State(explain.Input{Object: job, Clusters: []*v1beta1.ComputeCluster{cluster}})
	if want := ": ComputeCluster demo: suspended by spec.suspend. Set spec.suspend to false to resume"; !strings.HasSuffix(said, want) {
		t.Errorf("it says %q, not %q", said, want)
	}
}
