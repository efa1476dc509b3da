package kueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

var at = metav1.NewTime(time.Unix(1000, 0))

// queued is a cluster with a head and two workers that is in a queue.
func queued() *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo", UID: "u", Labels: map[string]string{LabelQueue: "team"}},
		Spec: v1beta1.ComputeClusterSpec{RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{
			{Name: "gpu", Replicas: new(int32(2)), NodeSpec: v1beta1.NodeSpec{
				Size: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "nvidia.com/gpu": resource.MustParse("1")},
			}},
		}},
	}
}

func wanted() *Workload { return For("ComputeCluster", queued(), queued(), nil) }

// workload is the cluster's, with conditions as "Type" or "!Type", each with a reason behind a colon.
func workload(conditions ...[2]string) *Workload {
	made := wanted()
	for _, condition := range conditions {
		status, kind := metav1.ConditionTrue, condition[0]
		if kind[0] == '!' {
			status, kind = metav1.ConditionFalse, kind[1:]
		}
		meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: condition[1], Message: condition[1] + " says Kueue"})
	}
	if is(made, quotaReserved) {
		made.Status.Admission = &Admission{ClusterQueue: "all"}
	}
	return made
}

// changed is a Workload after an edit.
func changed(of *Workload, edit func(*Workload)) *Workload {
	edit(of)
	return of
}

var (
	reserved = [2]string{quotaReserved, "Quota"}
	let      = [2]string{admitted, "Admitted"}
	thrown   = [2]string{evicted, "Preempted"}
)

// decision is what is seen of an object, how it is, and what follows for it.
type decision struct {
	seen Seen
	now  State
	want string
}

var wants, runs = State{Wants: true}, State{Wants: true, Runs: true}

// admissions are of objects on their way from a queue to their pods.
func admissions() map[string]decision {
	return map[string]decision{
		"an object in no queue runs":                     {Seen{}, wants, "runs, leave"},
		"one that left its queue runs, and holds none":   {Seen{Workload: workload(reserved, let)}, runs, "runs, delete"},
		"a new one is queued":                            {Seen{}.of(nil), wants, "held: it is being queued, create"},
		"one that ran before stops first":                {Seen{}.of(nil), runs, "held: it is being queued, leave"},
		"one that Kueue has not seen waits":              {Seen{}.of(workload()), wants, "held: Kueue has not looked at it yet, leave"},
		"one without room waits, in Kueue's words":       {Seen{}.of(workload([2]string{"!QuotaReserved", "Pending"})), wants, "held: Pending says Kueue, leave"},
		"one with quota and open checks waits for these": {Seen{}.of(checked("Pending")), wants, "held: admission check prov is Pending: soon, leave"},
		"one with quota is not admitted yet":             {Seen{}.of(workload(reserved)), wants, "held: Kueue has reserved its quota and not admitted it yet, leave"},
		"an admitted one runs":                           {Seen{}.of(workload(reserved, let)), runs, "runs, leave"},
		"an admitted one that is ready says so":          {Seen{}.of(workload(reserved, let)), State{Wants: true, Runs: true, Ready: true}, "runs, write the status of PodsReady=True"},
		"one that said so says it once":                  {Seen{}.of(workload(reserved, let, [2]string{podsReady, "Started"})), State{Wants: true, Runs: true, Ready: true}, "runs, leave"},
		"one that is ready no more says so":              {Seen{}.of(workload(reserved, let, [2]string{podsReady, "Started"})), runs, "runs, write the status of PodsReady=False"},
	}
}

// evictions are of objects that lose their quota, or ask for another.
func evictions() map[string]decision {
	return map[string]decision{
		"an evicted one stops, and keeps its quota": {Seen{}.of(workload(reserved, let, thrown)), runs, "held: it was evicted: Preempted says Kueue, leave"},
		"an evicted one without pods gives it back": {
			Seen{}.of(workload(reserved, let, thrown)), wants,
			"held: it was evicted: Preempted says Kueue, write the status of Admitted=False QuotaReserved=False Requeued=True",
		},
		"one that was evicted for its checks is not queued yet": {
			Seen{}.of(workload(reserved, let, [2]string{evicted, "AdmissionCheck"})), wants,
			"held: it was evicted: AdmissionCheck says Kueue, write the status of Admitted=False QuotaReserved=False Requeued=False",
		},
		"one that gave it back waits": {Seen{}.of(workload([2]string{"!QuotaReserved", "Pending"}, thrown)), wants, "held: it was evicted: Preempted says Kueue, leave"},
		"one of another size stops":   {Seen{}.of(resized()), runs, "held: its place in the queue is made again, as what it asks for has changed, leave"},
		"one of another size is queued again without pods": {
			Seen{}.of(resized()), wants, "held: its place in the queue is made again, as what it asks for has changed, delete",
		},
		"one of an installation with other defaults goes on": {Seen{}.of(installed()), runs, "runs, leave"},
		"one of an installation with other defaults is queued again without pods": {
			Seen{}.of(installed()), wants, "held: its place in the queue is made again, as what it asks for has changed, delete",
		},
		"one of another queue is queued again": {
			Seen{}.of(changed(workload(reserved, let), func(w *Workload) { w.Spec.QueueName = "other" })), wants,
			"held: its place in the queue is made again, as what it asks for has changed, delete",
		},
		"one that was called finished is queued again": {
			Seen{}.of(workload(reserved, let, [2]string{finished, "Succeeded"})), wants,
			"held: its place in the queue is made again, as what it asks for has changed, delete",
		},
		"one of another priority is ranked": {Seen{}.of(changed(workload(), func(w *Workload) { w.Spec.PriorityClassRef = &ClassRef{Name: "old"} })), wants, "held: Kueue has not looked at it yet, rank"},
		"one with quota keeps the priority that it cannot lose": {
			Seen{}.of(changed(workload(reserved, let), func(w *Workload) { w.Spec.PriorityClassRef = &ClassRef{Name: "old"} })), runs, "runs, leave",
		},
	}
}

// endings are of objects that need no quota any more, have a problem or go by the Workload of a job.
func endings() map[string]decision {
	return map[string]decision{
		"a suspended one keeps its quota while it has pods":   {Seen{}.of(workload(reserved, let)), State{Runs: true}, "runs, leave"},
		"a suspended one leaves the queue":                    {Seen{}.of(workload(reserved, let)), State{}, "runs, delete"},
		"a suspended one is in none":                          {Seen{}.of(nil), State{}, "held: it is being queued, leave"},
		"one whose Workload goes stops":                       {Seen{}.of(changed(workload(reserved, let), func(w *Workload) { w.DeletionTimestamp = &at })), wants, "held: its Workload is being deleted, leave"},
		"one with a problem waits":                            {Seen{Queue: "team", Problem: "no such class"}, wants, "held: no such class, leave"},
		"an admitted one with a problem stops":                {Seen{Queue: "team", Problem: "no such flavor", Workload: workload(reserved, let)}, runs, "held: no such flavor, leave"},
		"one with a problem and no pods gives its quota back": {Seen{Queue: "team", Problem: "no such flavor", Workload: workload(reserved, let)}, wants, "held: no such flavor, delete"},
		"an ended one keeps its quota while it has pods":      {Seen{}.of(workload(reserved, let)), State{Runs: true, Ended: "done"}, "runs, leave"},
		"an ended one is finished":                            {Seen{}.of(workload(reserved, let)), State{Wants: true, Ended: "done"}, "runs, write the status of Finished=True"},
		"a finished one stays so":                             {Seen{}.of(workload(reserved, let, [2]string{finished, "Succeeded"})), State{Ended: "done"}, "runs, leave"},
		"one that ended before it was queued is none":         {Seen{}.of(nil), State{Ended: "stopped"}, "held: it is being queued, leave"},
		"the cluster of an admitted job runs":                 {Seen{Queue: "team", Rides: true, Workload: workload(reserved, let)}, wants, "runs, leave"},
		"the cluster of an evicted job is its job's to stop":  {Seen{Queue: "team", Rides: true, Workload: workload(reserved, let, thrown)}, runs, "runs, leave"},
		"the cluster of an evicted job does not begin": {
			Seen{Queue: "team", Rides: true, Workload: workload(reserved, let, thrown)}, wants, "held: it was evicted: Preempted says Kueue, leave",
		},
		"the cluster of a job without Workload waits":                   {Seen{Queue: "team", Rides: true}, wants, "held: the job that it belongs to is in no queue, leave"},
		"the cluster of a job whose Workload went is its job's to stop": {Seen{Queue: "team", Rides: true}, runs, "runs, leave"},
		"the cluster of a job whose flavor is gone waits": {
			Seen{Queue: "team", Rides: true, Problem: "no flavor", Workload: workload(reserved, let)}, wants, "held: no flavor, leave",
		},
		"the cluster of a job whose flavor is gone is its job's to stop": {
			Seen{Queue: "team", Rides: true, Problem: "no flavor", Workload: workload(reserved, let)}, runs, "runs, leave",
		},
	}
}

func TestDecide(t *testing.T) {
	for _, cases := range []map[string]decision{admissions(), evictions(), endings()} {
		for name, test := range cases {
			if got := told(test.seen, Decide(test.seen, test.now, at)); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	}
}

// of is what is seen of the cluster with a Workload.
func (s Seen) of(workload *Workload) Seen {
	return Seen{Queue: "team", Wanted: wanted(), Workload: workload}
}

func resized() *Workload {
	three, cluster := int32(3), queued()
	cluster.Spec.WorkerGroups[0].Replicas = &three
	return changed(workload(reserved, let), func(w *Workload) {
		other := For("ComputeCluster", cluster, cluster, nil)
		w.Spec, w.Annotations = other.Spec, other.Annotations
	})
}

// installed is the cluster's Workload of an installation with other defaults.
func installed() *Workload {
	return changed(workload(reserved, let), func(w *Workload) {
		other := For("ComputeCluster", queued(), queued(), &pod.Installed{PodDefaults: &v1beta1.PodDefaults{NodeSelector: map[string]string{"pool": "a"}}})
		w.Spec, w.Annotations = other.Spec, other.Annotations
	})
}

// checked has quota, and an admission check in a state.
func checked(state string) *Workload {
	return changed(workload(reserved), func(w *Workload) {
		w.Status.AdmissionChecks = []CheckState{{Name: "done", State: "Ready"}, {Name: "prov", State: state, Message: "soon"}}
	})
}

// told is an answer in words, with the conditions that it changes.
func told(seen Seen, answer Answer) string {
	text := "runs"
	if answer.Held {
		text = "held: " + answer.Waits
	}
	text += ", " + answer.Step.String()
	if answer.Step != Tell {
		return text
	}
	for _, kind := range []string{admitted, finished, podsReady, quotaReserved, requeued} {
		before, now := meta.FindStatusCondition(seen.Workload.Status.Conditions, kind), meta.FindStatusCondition(answer.Status.Conditions, kind)
		if now != nil && !cmp.Equal(before, now) {
			text += fmt.Sprintf(" %s=%s", kind, now.Status)
		}
	}
	return text
}

func TestRelease_TakesTheAdmissionAway(t *testing.T) {
	before := workload(reserved, let, thrown, [2]string{podsReady, "Started"})
	answer := Decide(Seen{}.of(before), State{Wants: true}, at)
	if answer.Status.Admission != nil || meta.IsStatusConditionTrue(answer.Status.Conditions, podsReady) {
		t.Errorf("after the release there is %+v", answer.Status)
	}
	if before.Status.Admission == nil {
		t.Error("what was seen was changed")
	}
}

func TestEnded_SaysHow(t *testing.T) {
	for failed, want := range map[bool]string{false: "Succeeded", true: "Failed"} {
		answer := Decide(Seen{}.of(workload()), State{Ended: "the driver ended", Failed: failed}, at)
		if got := meta.FindStatusCondition(answer.Status.Conditions, finished); got.Reason != want || got.Message != "the driver ended" {
			t.Errorf("failed %v: it says %+v", failed, got)
		}
	}
}

func TestPodSets(t *testing.T) {
	five, one := int32(5), int32(1)
	for name, test := range map[string]struct {
		edit func(*v1beta1.ComputeClusterSpec)
		want string
	}{
		"the head and the workers of each group": {func(*v1beta1.ComputeClusterSpec) {}, "head:1 workers-gpu:2 of 4 CPUs"},
		"with autoscaling the maximum": {func(s *v1beta1.ComputeClusterSpec) {
			s.Autoscaling, s.WorkerGroups[0].MaxReplicas = &v1beta1.Autoscaling{}, &five
		}, "head:1 workers-gpu:5 of 4 CPUs"},
		"all hosts of a replica":          {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].HostsPerReplica = 4 }, "head:1 workers-gpu:8 of 4 CPUs"},
		"none of a suspended group":       {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Suspend = new(true) }, "head:1"},
		"none of a group without a size":  {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Replicas = new(int32) }, "head:1"},
		"one of a small group":            {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Replicas = &one }, "head:1 workers-gpu:1 of 4 CPUs"},
		"one of a group without replicas": {func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Replicas = nil }, "head:1 workers-gpu:1 of 4 CPUs"},
		"the minimum of a group without replicas": {
			func(s *v1beta1.ComputeClusterSpec) {
				s.WorkerGroups[0].Replicas, s.WorkerGroups[0].MinReplicas = nil, &five
			},
			"head:1 workers-gpu:5 of 4 CPUs",
		},
	} {
		cluster := queued()
		test.edit(&cluster.Spec)
		got := ""
		for _, set := range For("ComputeCluster", cluster, cluster, nil).Spec.PodSets {
			if set.Name != headSet {
				cpu := set.Template.Spec.Containers[0].Resources.Requests["cpu"]
				got += fmt.Sprintf(" %s:%d of %s CPUs", set.Name, set.Count, cpu.String())
			} else {
				got += fmt.Sprintf("%s:%d", set.Name, set.Count)
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestAsks_CountsLimits: what a container has a limit of, and no request, it requests. A change of it is noticed.
func TestAsks_CountsLimits(t *testing.T) {
	limited := func(gpus string) *v1beta1.ComputeCluster {
		cluster := queued()
		cluster.Spec.WorkerGroups[0].Size = nil
		cluster.Spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "ray", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse(gpus)}},
		}}}}
		return cluster
	}
	ours := For("ComputeCluster", limited("1"), limited("1"), nil)
	if asks := ours.Spec.PodSets[1].Template.Spec.Containers[0].Resources.Requests; asks.Cpu().String() != "2" || len(asks) != 2 {
		t.Errorf("Kueue is asked for %v", asks)
	}
	resized := limited("1")
	resized.Spec.WorkerGroups[0].Replicas = new(int32(3))
	for name, test := range map[string]struct {
		there *Workload
		of    *v1beta1.ComputeCluster
		same  bool
	}{
		"as it was":         {ours, limited("1"), true},
		"with other limits": {ours, limited("2"), false},
		"of another size":   {ours, resized, false},
		"without limits":    {wanted(), queued(), true},
	} {
		if same := asks(test.there, For("ComputeCluster", test.of, test.of, nil), true); same != test.same {
			t.Errorf("%s: it asks for the same: %v", name, same)
		}
	}
}

func TestFor_IsTheObjects(t *testing.T) {
	made := wanted()
	owner := metav1.GetControllerOf(made)
	if made.Namespace != "n" || made.Spec.QueueName != "team" || made.Labels[LabelOwner] != "ComputeCluster" || owner == nil || owner.UID != "u" {
		t.Errorf("the Workload is %+v", made.ObjectMeta)
	}
	selected := For("ComputeCluster", queued(), queued(), &pod.Installed{PodDefaults: &v1beta1.PodDefaults{NodeSelector: map[string]string{"pool": "a"}}})
	for _, set := range selected.Spec.PodSets {
		if set.Template.Spec.NodeSelector["pool"] != "a" {
			t.Errorf("Kueue is not told of the node selector of %s", set.Name)
		}
	}
}

func TestRefusal_IsOfTooManySets(t *testing.T) {
	cluster := queued()
	for i := range MostPodSets {
		group := *cluster.Spec.WorkerGroups[0].DeepCopy()
		group.Name = fmt.Sprintf("g%d", i)
		if got := For("ComputeCluster", cluster, cluster, nil).Refusal(); (got != "") != (len(cluster.Spec.WorkerGroups)+1 > MostPodSets) {
			t.Errorf("of %d groups: %q", len(cluster.Spec.WorkerGroups), got)
		}
		cluster.Spec.WorkerGroups = append(cluster.Spec.WorkerGroups, group)
	}
}

func TestPlacements(t *testing.T) {
	of := workload(reserved, let)
	of.Status.Admission.PodSetAssignments = []PodSetAssignment{
		{Name: "head", Flavors: map[corev1.ResourceName]string{"cpu": "spot", "memory": "spot"}},
		{Name: "workers-gpu", Flavors: map[corev1.ResourceName]string{"cpu": "a100"}},
	}
	of.Status.AdmissionChecks = []CheckState{{Name: "prov", State: "Ready", PodSetUpdates: []PodSetUpdate{{
		Name: "head", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, NodeSelector: map[string]string{"node": "new"},
		Tolerations: []corev1.Toleration{{Key: "new"}},
	}}}}
	if names := of.Flavors(); !names["spot"] || !names["a100"] || len(names) != 2 {
		t.Errorf("its flavors are %v", names)
	}
	placed := of.Placements(map[string]*ResourceFlavor{
		"spot": {Spec: ResourceFlavorSpec{NodeLabels: map[string]string{"market": "spot"}, Tolerations: []corev1.Toleration{{Key: "spot"}}}},
		"a100": {Spec: ResourceFlavorSpec{NodeLabels: map[string]string{"gpu": "a100"}}},
	})
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "z"}}}
	placed[PodSetOf("")].On(pod)
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"zone": "z", "market": "spot", "node": "new"}, Tolerations: []corev1.Toleration{{Key: "spot"}, {Key: "new"}},
		},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
	if got := placed[PodSetOf("gpu")].NodeSelector; !cmp.Equal(got, map[string]string{"gpu": "a100"}) {
		t.Errorf("the workers are placed by %v", got)
	}
}
