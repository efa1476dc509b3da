package cluster_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// accepted is demo with a spec that this operator refuses, as an earlier one that did not has left it.
func accepted(edits ...func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	of := demo()
	of.Generation = 3
	of.Spec.Head.RayStartParams = map[string]string{"UPPER": ""}
	of.Status = v1beta1.ComputeClusterStatus{Epoch: 1, ObservedGeneration: 3, Conditions: []metav1.Condition{{
		Type: v1beta1.ConditionStalled, Status: metav1.ConditionFalse, Reason: reason.NotStalled.Code,
	}}}
	for _, edit := range edits {
		edit(of)
	}
	return of
}

// TestAccept: a stricter operator suspends, heals and scales what runs, and says what it refuses.
func TestAccept(t *testing.T) {
	edit := func(change func(*v1beta1.ComputeCluster)) func(*v1beta1.ComputeCluster) {
		return func(of *v1beta1.ComputeCluster) {
			of.Generation++
			change(of)
		}
	}
	known := func(s *cluster.Seen) { s.Record.Accepted = []string{"option-name"} }
	scale := edit(func(of *v1beta1.ComputeCluster) { of.Spec.WorkerGroups[0].Replicas = new(int32(3)) })
	suspend := edit(func(of *v1beta1.ComputeCluster) { of.Spec.Suspend = new(true) })
	stalled := func(of *v1beta1.ComputeCluster) { of.Status.Conditions[0].Reason = reason.InvalidSpec.Code }
	refusedBefore := func(of *v1beta1.ComputeCluster) {
		of.Spec.Suspend = new(true)
		of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionInvalidSpec, Status: metav1.ConditionTrue})
	}
	worse := edit(func(of *v1beta1.ComputeCluster) {
		of.Spec.WorkerGroups[0].Size = testkit.Resources("cpu", "0")
	})
	for name, test := range map[string]struct {
		of       *v1beta1.ComputeCluster
		seen     cluster.Seen
		goesOn   bool
		accepted []string
		does     func(cluster.Plan) bool
	}{
		"the record says so first":           {accepted(), given(1), true, []string{"option-name"}, func(p cluster.Plan) bool { return p.Record != nil }},
		"a lost head is replaced":            {accepted(), given(1, known, without(0)), true, []string{"option-name"}, func(p cluster.Plan) bool { return p.Epoch == 2 }},
		"a lost worker is replaced":          {accepted(), given(1, known, without(1)), true, []string{"option-name"}, cluster.Plan.Makes},
		"it is scaled":                       {accepted(scale), given(1, known), true, []string{"option-name"}, cluster.Plan.Makes},
		"it is suspended":                    {accepted(suspend), given(1, known), true, []string{"option-name"}, func(p cluster.Plan) bool { return len(p.Delete) == 3 }},
		"an edit that breaks more stalls":    {accepted(worse), given(1, known), false, nil, nil},
		"one that was refused stalls":        {accepted(stalled), given(1), false, nil, nil},
		"one that nobody accepted stalls":    {accepted(scale), given(1), false, nil, nil},
		"nothing keeps from being suspended": {accepted(stalled, suspend), given(1), true, nil, func(p cluster.Plan) bool { return len(p.Delete) == 3 }},
		"a suspension accepts nothing":       {accepted(refusedBefore), given(1), true, nil, func(p cluster.Plan) bool { return p.Suspended }},
	} {
		plan := decide(test.of, test.seen)
		if goesOn := plan.Stalled == nil; goesOn != test.goesOn || goesOn != (plan.Refused != nil) || !slices.Equal(plan.Accepted, test.accepted) {
			t.Errorf("%s: stalled %v, refused %v, accepted %v", name, plan.Stalled, plan.Refused, plan.Accepted)
		}
		if test.does != nil && !test.does(plan) {
			t.Errorf("%s: %s", name, plan)
		}
		status := cluster.Status(test.of, test.seen, plan, cluster.Outcome{}, now)
		if told := meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionInvalidSpec); told != test.goesOn {
			t.Errorf("%s: the condition is %v", name, told)
		}
	}
}
