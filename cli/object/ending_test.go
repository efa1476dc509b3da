package object

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	isTrue  = metav1.ConditionTrue
	isFalse = metav1.ConditionFalse
)

func says(kind string, status metav1.ConditionStatus, finding reason.Finding) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: finding.Code, Message: finding.Text}
}

func clusterWith(conditions ...metav1.Condition) *v1beta1.ComputeCluster {
	c := &v1beta1.ComputeCluster{}
	c.Status.Conditions = conditions
	return c
}

func jobWith(phase string, conditions ...metav1.Condition) *v1beta1.ClusterJob {
	j := &v1beta1.ClusterJob{}
	j.Status.Phase, j.Status.Conditions = phase, conditions
	return j
}

func serviceWith(hasCandidate bool, conditions ...metav1.Condition) *v1beta1.ClusterService {
	s := &v1beta1.ClusterService{}
	s.Status.Conditions = conditions
	if hasCandidate {
		s.Status.Candidate = &v1beta1.ServiceVersion{Revision: 2}
	}
	return s
}

// goesOn is the code of a wait that has not ended.
const goesOn = -1

func TestJudge_EndsAWait(t *testing.T) {
	stalled := says(v1beta1.ConditionStalled, isTrue, reason.HeadFailing.Of(3))
	changing := says(v1beta1.ConditionUpgrading, isTrue, reason.ConfigChanging.Of("2", "s", "x"))
	rolledBack := says(v1beta1.ConditionRolledBack, isTrue, reason.Finding{Code: "X", Text: "version 2 failed"})
	later, ended := clusterWith(says(v1beta1.ConditionReady, isTrue, reason.AllReady.Of(1, 1))), jobWith(v1beta1.PhaseSucceeded,
		says(v1beta1.ConditionReady, isTrue, reason.JobSucceeded.Of(1)))
	later.Generation = 2
	ended.Status.EndTime = &metav1.Time{Time: ended.CreationTimestamp.Add(90 * time.Second)}
	deleted := clusterWith()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	bySpec := clusterWith(says(v1beta1.ConditionSuspended, isTrue, reason.SuspendedBySpec.Of()))
	bySpec.Spec.Suspend = new(true)
	for name, c := range map[string]struct {
		object verbs.Object
		goal   string
		code   int
		says   string
	}{
		"a new cluster":                       {clusterWith(), ForReady, goesOn, ""},
		"a ready cluster":                     {clusterWith(says(v1beta1.ConditionReady, isTrue, reason.AllReady.Of(1, 1))), ForReady, outcome.Done, "is ready"},
		"a status of the spec before":         {later, ForReady, goesOn, ""},
		"a cluster that is being deleted":     {deleted, ForReady, outcome.Failed, "being deleted"},
		"a cluster that is suspended":         {bySpec, ForReady, outcome.Stopped, "resume"},
		"one that its idle policy suspended":  {clusterWith(says(v1beta1.ConditionSuspended, isTrue, reason.SuspendedIdle.Of("x"))), ForReady, goesOn, ""},
		"a suspension that is waited for":     {bySpec, ForSuspended, outcome.Done, "suspended"},
		"a suspension that is not there yet":  {clusterWith(), ForSuspended, goesOn, ""},
		"a head that fails again and again":   {clusterWith(says(v1beta1.ConditionReady, isFalse, reason.HeadFailing.Of(3)), stalled), ForReady, outcome.Failed, "goes no further"},
		"a name that another owner has":       {clusterWith(says(v1beta1.ConditionReady, isFalse, reason.NameConflict.Of("Service x")), says(v1beta1.ConditionStalled, isTrue, reason.NameConflict.Of("Service x"))), ForReady, outcome.Refused, "goes no further"},
		"a job that runs":                     {jobWith(v1beta1.PhaseRunning), ForReady, goesOn, ""},
		"a job that has succeeded":            {ended, ForReady, outcome.Done, "succeeded after 1m30s"},
		"a job that has failed":               {jobWith(v1beta1.PhaseFailed, says(v1beta1.ConditionFailed, isTrue, reason.EntrypointFailed.Of(1, ""))), ForReady, outcome.Failed, "has failed"},
		"a job that was stopped":              {jobWith(v1beta1.PhaseStopped, says(v1beta1.ConditionFailed, isTrue, reason.EntrypointFailed.Of(1, ""))), ForReady, outcome.Stopped, "stopped"},
		"an ended job cannot be suspended":    {ended, ForSuspended, outcome.Failed, "has ended"},
		"a service whose next version comes":  {serviceWith(true, says(v1beta1.ConditionReady, isTrue, reason.AllReady.Of(1, 1))), ForRollout, goesOn, ""},
		"a configuration on its way":          {serviceWith(false, says(v1beta1.ConditionReady, isTrue, reason.ConfigChanging.Of("2", "s", "x")), changing), ForRollout, goesOn, ""},
		"the former one still answers":        {serviceWith(false, says(v1beta1.ConditionReady, isTrue, reason.ConfigChanging.Of("2", "s", "x")), changing), ForReady, outcome.Done, "is ready"},
		"a service whose requests have moved": {serviceWith(false, says(v1beta1.ConditionReady, isTrue, reason.AllReady.Of(1, 1))), ForRollout, outcome.Done, "is ready"},
		"a version that was rolled back":      {serviceWith(false, says(v1beta1.ConditionReady, isTrue, reason.AllReady.Of(1, 1)), rolledBack), ForRollout, outcome.Failed, "version 2 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			end, ok := Judge(explain.Input{Object: c.object}, c.goal)
			if !ok {
				end.Code = goesOn
			}
			if end.Code != c.code || !strings.Contains(end.Text, c.says) {
				t.Errorf("it ends with %d, %q; want %d, %q", end.Code, end.Text, c.code, c.says)
			}
		})
	}
}
