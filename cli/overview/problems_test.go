package overview

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// sick is a cluster with a finding since a minute of the hour.
func sick(name string, finding reason.Finding, minute int) verbs.Object {
	at := metav1.NewTime(time.Date(2026, 11, 27, 9, minute, 0, 0, time.UTC))
	c := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: finding.Code, Message: finding.Text, LastTransitionTime: at}}
	return c
}

func TestProblems_AreByReasonOldestFirst(t *testing.T) {
	invalid, token := reason.InvalidSpec.Of("x"), reason.TokenMissing.Of("s")
	over := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Name: "over"}}
	over.Status.EndTime = &metav1.Time{}
	over.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: reason.EntrypointFailed.Code}}
	found := problemsOf([]verbs.Object{
		sick("c", invalid, 30), sick("a", token, 20), sick("b", invalid, 10), sick("d", reason.WorkersStarting.Of(0, 1), 1), over,
		&v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
	})
	var names []string
	for i := range found {
		names = append(names, found[i].Name)
		if found[i].Message == "" || found[i].Remedy == "" {
			t.Errorf("problem %d lacks words: %+v", i, found[i])
		}
	}
	if got := strings.Join(names, " "); got != "b c a" {
		t.Errorf("the order is %q, want %q", got, "b c a")
	}
}
