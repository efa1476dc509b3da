package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// inQueue has demo be in a queue, with a Workload whose conditions are true, or with none for no name.
func inQueue(conditions ...string) func(*cluster.Seen) {
	return func(s *cluster.Seen) {
		of := demo()
		of.Labels = map[string]string{kueue.LabelQueue: "team"}
		s.Queue = kueue.Seen{Queue: "team", Wanted: kueue.For("ComputeCluster", of, of, nil)}
		if len(conditions) == 0 {
			return
		}
		s.Queue.Workload = s.Queue.Wanted.DeepCopy()
		for _, kind := range conditions {
			meta.SetStatusCondition(&s.Queue.Workload.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Preempted", Message: "Kueue says so",
			})
		}
	}
}

func noPods(s *cluster.Seen) { s.Pods, s.Record.HeadUID = nil, "" }

// suspendedBy has the record say why the cluster has no pods.
func suspendedBy(cause string) func(*cluster.Seen) {
	return func(s *cluster.Seen) { s.Record.Suspended = cluster.Suspension{Cause: cause} }
}

func TestQueue_HoldsAndLets(t *testing.T) {
	suspended := func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) }
	damaged := func(s *cluster.Seen) { s.RecordError = errors.New("no JSON") }
	for name, test := range map[string]struct {
		seen cluster.Seen
		edit func(*v1beta1.ComputeCluster)
		want string
	}{
		"a new one is queued and makes no pod":              {given(1, noPods, inQueue()), nil, "Queue: create Workload; Pending Queued"},
		"one that is not admitted makes no pod":             {given(1, noPods, suspendedBy("Queue"), inQueue("Other")), nil, "Queue: ; Pending Queued"},
		"an admitted one resumes":                           {given(1, noPods, suspendedBy("Queue"), inQueue("Admitted", "QuotaReserved")), nil, ": create head; Pending HeadMissing"},
		"an admitted one that is ready says so":             {given(1, inQueue("Admitted", "QuotaReserved")), nil, ": write the status of Workload; Ready AllReady"},
		"an evicted one loses its pods and keeps quota":     {given(1, inQueue("Admitted", "QuotaReserved", "Evicted")), nil, "Queue: delete 3 pods; Suspending Queued"},
		"one without pods any more gives its quota back":    {given(1, noPods, suspendedBy("Queue"), inQueue("Admitted", "QuotaReserved", "Evicted")), nil, "Queue: write the status of Workload; Pending Queued"},
		"a suspended one keeps its quota while it has pods": {given(1, inQueue("Admitted", "QuotaReserved")), suspended, "Spec: delete 3 pods; Suspending Suspending"},
		"a suspended one without pods leaves the queue":     {given(1, noPods, suspendedBy("Spec"), inQueue("Admitted", "QuotaReserved")), suspended, "Spec: delete Workload; Suspended "},
		"an admitted one that is stalled goes on":           {given(1, damaged, inQueue("Admitted", "QuotaReserved")), nil, ": ; Failed RecordDamaged"},
		"an evicted one that is stalled loses its pods":     {given(1, damaged, inQueue("Admitted", "QuotaReserved", "Evicted")), nil, ": delete 3 pods; Failed RecordDamaged"},
		"a stalled one without pods leaves the queue":       {given(1, damaged, noPods, inQueue("Admitted", "QuotaReserved", "Evicted")), nil, ": delete Workload; Failed RecordDamaged"},
		"one with a problem says so":                        {given(1, noPods, inQueue(), func(s *cluster.Seen) { s.Queue.Problem = "no class" }), nil, "Queue: ; Pending QueueBlocked"},
	} {
		of := demo()
		if test.edit != nil {
			test.edit(of)
		}
		if got := queuedAs(of, test.seen); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// queuedAs is why the cluster has no pods, what is done, and what is told.
func queuedAs(of *v1beta1.ComputeCluster, seen cluster.Seen) string {
	plan := decide(of, seen)
	cause := seen.Record.Suspended.Cause
	if plan.Record != nil {
		cause = plan.Record.Suspended.Cause
	}
	var acts []string
	if plan.Head != nil {
		acts = append(acts, "create head")
	}
	if len(plan.Delete) > 0 {
		acts = append(acts, fmt.Sprintf("delete %d pods", len(plan.Delete)))
	}
	if plan.Queue.Step != kueue.Rest {
		acts = append(acts, plan.Queue.Step.String()+" Workload")
	}
	status := cluster.Status(of, seen, plan, cluster.Outcome{}, now)
	why := ""
	if ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady); ready != nil {
		why = ready.Reason
	}
	return fmt.Sprintf("%s: %s; %s %s", cause, strings.Join(acts, ", "), status.Phase, why)
}

func TestQueue_SaysThatItsWorkloadIsRefused(t *testing.T) {
	seen := given(1, noPods, inQueue())
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "w", errors.New("too many"))
	outcome := cluster.Outcome{Outcome: reconcile.Outcome{Err: fault.Wrap(forbidden, "create Workload w")}}
	status := cluster.Status(demo(), seen, decide(demo(), seen), outcome, now)
	ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
	if ready.Reason != "QueueBlocked" || !strings.Contains(ready.Message, "too many") {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
}

func TestQueue_PlacesPodsByTheirFlavor(t *testing.T) {
	seen := given(1, noPods, inQueue("Admitted", "QuotaReserved"))
	seen.Queue.Placements = map[string]kueue.Placement{
		kueue.PodSetOf(""):    {NodeSelector: map[string]string{"pool": "small"}},
		kueue.PodSetOf("cpu"): {NodeSelector: map[string]string{"pool": "large"}},
	}
	plain, plan := decide(demo(), given(1, noPods)), decide(demo(), seen)
	if got := plan.Head.Spec.NodeSelector["pool"]; got != "small" {
		t.Errorf("the head is placed on %q", got)
	}
	for _, worker := range plan.Create[0].Pods {
		if got := worker.Spec.NodeSelector["pool"]; got != "large" {
			t.Errorf("worker %s is placed on %q", worker.Name, got)
		}
	}
	if got, want := plan.Head.Annotations[v1beta1.AnnotationIntent], plain.Head.Annotations[v1beta1.AnnotationIntent]; got != want {
		t.Errorf("the flavor makes the head one of intent %s, without it is %s", got, want)
	}
}

func TestQueue_KeepsSizesInTheQuota(t *testing.T) {
	held := func(s *cluster.Seen) { s.Record.Scaled = map[string]cluster.RecordedSize{"cpu": {2, 8}} } // 8 workers, as autoscaling went
	for queued, want := range map[bool]int{false: 8, true: 2} {
		seen := given(1, noPods, held)
		if queued {
			inQueue("Admitted", "QuotaReserved")(&seen)
			seen.Queue.Workload.Status.Admission = &kueue.Admission{ClusterQueue: "all"}
		}
		if got := decide(demo(), seen).Sizes["cpu"].Replicas; got != want {
			t.Errorf("in a queue %v: the group has the size %d, want %d", queued, got, want)
		}
	}
}

func TestQueue_LeavesNoSurge(t *testing.T) {
	of := demo()
	of.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(2))}}
	outOfDate := func(s *cluster.Seen) {
		for _, worker := range s.Pods[1:] {
			old(worker.Pod)
		}
	}
	for queued, want := range map[bool]string{false: "2 made, 0 leave", true: "0 made, 1 leave"} {
		seen := given(1, outOfDate)
		if queued {
			inQueue("Admitted", "QuotaReserved")(&seen)
		}
		plan, made := decide(of, seen), 0
		for _, filling := range plan.Create {
			made += len(filling.Pods)
		}
		if got := fmt.Sprintf("%d made, %d leave", made, len(plan.Exits)); got != want {
			t.Errorf("in a queue %v: %s, want %s", queued, got, want)
		}
	}
}
