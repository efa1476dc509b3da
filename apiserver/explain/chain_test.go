package explain_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const schemaText = "Waiting for the operator; if this stays, check that the Heliostat operator runs"

var (
	noRoom   = reason.Unschedulable.In("resources").Of("0/2 nodes fit: 2 too little cpu", "cpu")
	crash    = reason.CrashLoop.Of("ray", "1", "", "")
	allReady = reason.AllReady.Of(1, 1)
)

func isReady(finding reason.Finding) metav1.Condition {
	return condition(v1beta1.ConditionReady, metav1.ConditionTrue, finding, 1)
}

func group(name string, finding reason.Finding) v1beta1.GroupStatus {
	return v1beta1.GroupStatus{Name: name, Reason: finding.Code, Message: finding.Text}
}

// managed is a cluster without a status that a controller manages.
func managed(by string) *v1beta1.ComputeCluster {
	cluster := clusterOf("demo")
	cluster.Spec.ManagedBy = by
	return cluster
}

// headlines are objects with what their status says first, and since when.
var headlines = map[string]struct {
	object runtime.Object
	want   string
	since  time.Time
}{
	"a status of the schema's": {
		clusterOf("demo", metav1.Condition{
			Type: v1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: explain.CodePending, Message: schemaText,
		}), "Pending: Waiting for the operator (If this stays, check that the Heliostat operator runs)", born,
	},
	"no status": {
		jobOf("demo"), "Pending: Waiting for the operator (If this stays, check that the Heliostat operator runs)", born,
	},
	"no status, of another controller": {
		managed("kueue.x-k8s.io/multikueue"), "Pending: Waiting for kueue.x-k8s.io/multikueue, which manages it (If this stays, check that its controller runs)", born,
	},
	"a code of another controller": {
		clusterOf("demo", unready(reason.Finding{Code: "Unheard", Text: "a. B"})), "Unheard: a. B ()", born.Add(time.Minute),
	},
	"Stalled where Ready is not there": {
		clusterOf("demo", condition(v1beta1.ConditionStalled, metav1.ConditionTrue, crash, 2)),
		"CrashLoop: container ray ended with exit code 1 (Check its log: kubectl logs --previous)", born.Add(2 * time.Minute),
	},
	"Reconciling where it is there alone": {
		clusterOf("demo", condition(v1beta1.ConditionReconciling, metav1.ConditionTrue, crash, 2)),
		"CrashLoop: container ray ended with exit code 1 (Check its log: kubectl logs --previous)", born.Add(2 * time.Minute),
	},
	"not before it was made": {
		clusterOf("demo", condition(v1beta1.ConditionReady, metav1.ConditionFalse, crash, -9)),
		"CrashLoop: container ray ended with exit code 1 (Check its log: kubectl logs --previous)", born,
	},
	"words of others beside the schema's code": {
		clusterOf("demo", unready(reason.Finding{Code: explain.CodePending, Text: "a"})), "Pending: a ()", born.Add(time.Minute),
	},
	"no status, of this operator by name": {
		managed(v1beta1.ManagedByOperator), "Pending: Waiting for the operator (If this stays, check that the Heliostat operator runs)", born,
	},
	"not a condition that does not hold": {
		clusterOf("demo", condition(v1beta1.ConditionStalled, metav1.ConditionFalse, crash, 2)),
		"Pending: Waiting for the operator (If this stays, check that the Heliostat operator runs)", born,
	},
	"since the youngest condition that says so": {
		clusterOf("demo", unready(crash), condition(v1beta1.ConditionWorkersReady, metav1.ConditionFalse, crash, 7),
			condition(v1beta1.ConditionHeadReady, metav1.ConditionFalse, noRoom, 9)),
		"CrashLoop: container ray ended with exit code 1 (Check its log: kubectl logs --previous)", born.Add(7 * time.Minute),
	},
	"nothing for a pod":           {&corev1.Pod{}, ":  ()", time.Time{}},
	"nothing for nothing":         {nil, ":  ()", time.Time{}},
	"nothing for a nil cluster":   {(*v1beta1.ComputeCluster)(nil), ":  ()", time.Time{}},
	"nothing for a nil job":       {(*v1beta1.ClusterJob)(nil), ":  ()", time.Time{}},
	"nothing for a nil service":   {(*v1beta1.ClusterService)(nil), ":  ()", time.Time{}},
	"no time where there is none": {clusterOf("demo", metav1.Condition{Type: "Ready", Reason: "A"}), "A:  ()", time.Time{}},
}

func TestHeadline(t *testing.T) {
	for name, test := range headlines {
		t.Run(name, func(t *testing.T) {
			have := explain.Headline(test.object)
			if text := fmt.Sprintf("%s: %s (%s)", have.Code, have.Message, have.Remedy); text != test.want || !have.Since.Equal(test.since) {
				t.Errorf("%s since %s, want %s since %s", text, have.Since, test.want, test.since)
			}
		})
	}
}

func TestReady(t *testing.T) {
	for name, test := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"as the condition has it":       {clusterOf("a", isReady(allReady)), "True"},
		"False of a condition":          {jobOf("a", unready(crash)), "False"},
		"Unknown without a condition":   {serviceOf("a"), "Unknown"},
		"Unknown of a foreign value":    {clusterOf("a", metav1.Condition{Type: "Ready", Status: "Maybe"}), "Unknown"},
		"Unknown of what is not a kind": {&corev1.Pod{}, "Unknown"},
	} {
		if have := explain.Ready(test.object); have != test.want {
			t.Errorf("%s: %s, want %s", name, have, test.want)
		}
	}
}

// story is an object with what it uses, and the chain that explains it.
type story struct {
	in   explain.Input
	want []string
}

// short is a cluster that lacks both workers of a group, and what is told of it.
func short() (cluster *v1beta1.ComputeCluster, pods []*corev1.Pod, told []string) {
	few := noRoom.About("2 of 2 workers of cpu")
	head := condition(v1beta1.ConditionHeadReady, metav1.ConditionTrue, reason.HeadReady.Of("demo-head"), 1)
	cluster = clusterOf("demo", unready(few), head, condition(v1beta1.ConditionWorkersReady, metav1.ConditionFalse, few, 1))
	cluster.Status.Groups = []v1beta1.GroupStatus{group("cpu", few)}
	pods = []*corev1.Pod{
		ready(podOf(cluster, "demo-head", "")), unschedulable(podOf(cluster, "demo-cpu-1", "cpu")), nil,
		unschedulable(podOf(cluster, "demo-cpu-0", "cpu")), unschedulable(podOf(clusterOf("other"), "other-head", "")),
	}
	const words = "cannot be scheduled: 0/2 nodes fit: 2 too little cpu (Request less in size, or add nodes with more cpu)"
	return cluster, pods, []string{
		"ComputeCluster team/demo Unschedulable: 2 of 2 workers of cpu: " + words,
		"Pod team/demo-cpu-0 Unschedulable: " + words,
	}
}

// clusterStories are about clusters.
func clusterStories() map[string]story {
	cluster, pods, told := short()
	store := reason.StoreSlow.Of("redis:6379", "5s")
	lame := clusterOf("demo", unready(reason.HeadMissing.Of()),
		condition(v1beta1.ConditionControlStoreReady, metav1.ConditionFalse, store, 1))
	soon := reason.IdleSoon.Of("10:00", "suspended", "11:00")
	idle := clusterOf("demo", isReady(allReady), condition(v1beta1.ConditionSuspended, metav1.ConditionFalse, soon, 1))
	young := clusterOf("demo", unready(reason.HeadStarting.Of("demo-head")),
		condition(v1beta1.ConditionWorkersReady, metav1.ConditionFalse, reason.WorkersStarting.Of(0, 1), 1))
	youngPods := []*corev1.Pod{starting(podOf(young, "demo-cpu-0", "cpu")), starting(podOf(young, "demo-head", ""))}
	return map[string]story{
		"a cluster leads to one pod of a group": {explain.Input{Object: cluster, Pods: pods}, told},
		"a condition that warns comes after what the status puts first": {
			explain.Input{Object: lame}, []string{
				"ComputeCluster team/demo HeadMissing: there is no head pod yet ()",
				"ComputeCluster team/demo StoreSlow: the control store at redis:6379 takes more than 5s to answer " +
					"(Find what slows it down; a running head continues, and a lost one recovers when the store is faster)",
			},
		},
		"what is ahead of a ready cluster": {
			explain.Input{Object: idle}, []string{
				"ComputeCluster team/demo AllReady: head and 1 of 1 workers are ready ()",
				"ComputeCluster team/demo IdleSoon: idle since 10:00; will be suspended at 11:00 " +
					"(Use the cluster, or change idlePolicy, to keep it)",
			},
		},
		"workers wait for the head and are not told of": {
			explain.Input{Object: young, Pods: youngPods}, []string{
				"ComputeCluster team/demo HeadStarting: head pod demo-head is starting ()",
				"Pod team/demo-head Starting: container ray is starting ()",
			},
		},
	}
}

// userStories are about jobs and services, which use clusters.
func userStories() map[string]story {
	cluster, pods, told := short()
	job := jobOf("train", unready(reason.ClusterStarting.Of("demo", "x")))
	job.Status.ClusterName = "demo"
	jobTold := "ClusterJob team/train ClusterStarting: ComputeCluster demo has no head yet that accepts jobs: x ()"
	over := job.DeepCopy()
	over.Status.EndTime = new(at(9))
	retried := jobOf("train", unready(reason.Retrying.Of(1, "DriverLost", "10:00")))
	retried.Status.Attempts = []v1beta1.JobAttempt{{Number: 1, Reason: "DriverLost", Message: reason.DriverLost.Of("its node died").Text}}
	gathering := jobOf("train", unready(reason.GangGathering.Of(1, "demo", "1 of 4 × {GPU: 1} missing")))
	gathering.Status.Gang = &v1beta1.GangStatus{LastRestart: &v1beta1.GangRestart{Replica: "worker/3", Reason: "Lost", Message: "pod a is gone"}}
	failed := gathering.DeepCopy()
	hasFailed := metav1.Condition{Type: v1beta1.ConditionFailed, Status: metav1.ConditionTrue}
	failed.Status.Conditions = []metav1.Condition{unready(reason.ProcessFailed.Of("worker/3", "a", 3, "x")), hasFailed}
	service := serviceOf("serve", isReady(reason.UpgradePreparing.Of("2", "demo", "x")))
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "former"}
	service.Status.Candidate = &v1beta1.ServiceVersion{ClusterName: "demo"}
	serviceTold := "ClusterService team/serve UpgradePreparing: version 2 is getting ready on ComputeCluster demo: x ()"
	owner := serviceOf("serve", unready(reason.ServeClusterStarting.Of("demo", "x")))
	owner.Status.Retiring = []string{"former"}
	owned, retiring := cluster.DeepCopy(), clusterOf("former", unready(reason.HeadMissing.Of()))
	for _, of := range []*v1beta1.ComputeCluster{owned, retiring} {
		of.OwnerReferences = []metav1.OwnerReference{{UID: owner.UID, Controller: new(true)}}
	}
	former := clusterOf("former", isReady(allReady))
	spare := clusterOf("demo", isReady(allReady))
	spare.Status.Groups = cluster.Status.Groups
	elsewhere := cluster.DeepCopy()
	elsewhere.Namespace = "other"
	in := func(object runtime.Object, clusters ...*v1beta1.ComputeCluster) explain.Input {
		return explain.Input{Object: object, Pods: pods, Clusters: clusters}
	}
	return map[string]story{
		"a job leads to its cluster and on":                 {in(job, former, nil, cluster), append([]string{jobTold}, told...)},
		"a job that waits knows what a ready cluster lacks": {in(job, spare), append([]string{jobTold}, told...)},
		"a job that is over waits for nothing":              {in(over, cluster), []string{jobTold}},
		"a cluster of another namespace is another":         {in(job, elsewhere), []string{jobTold}},
		"a service leads to the version on its way":         {in(service, former, cluster), append([]string{serviceTold}, told...)},
		"a service leads to a cluster that it owns and keeps": {
			in(owner, owned, retiring),
			append([]string{"ClusterService team/serve ServeClusterStarting: ComputeCluster demo has no head yet that answers: x ()"}, told...),
		},
		"a job that is retried says what became of the attempt": {
			in(retried), []string{
				"ClusterJob team/train Retrying: attempt 1 ended (DriverLost); the next follows at 10:00 ()",
				"ClusterJob team/train DriverLost: Ray lost the driver: its node died " +
					"(Set retry to retry after such a loss)",
			},
		},
		"a gang that starts again says what ended first": {
			in(gathering), []string{
				"ClusterJob team/train GangGathering: attempt 1 waits for its places on ComputeCluster demo: 1 of 4 × {GPU: 1} missing ()",
				"ClusterJob team/train GangRestarted: worker/3 ended first, and all processes start again: pod a is gone ()",
			},
		},
		"a gang that is over starts no more": {
			in(failed), []string{"ClusterJob team/train ProcessFailed: worker/3 on pod a failed first, with exit code 3: x (Check its last lines in status.attempts)"},
		},
	}
}

// trim leaves of objects what the server holds of them.
func trim(in *explain.Input) {
	in.Object = in.Object.DeepCopyObject()
	all := []runtime.Object{in.Object}
	for i, cluster := range in.Clusters {
		in.Clusters[i] = cluster.DeepCopy()
		all = append(all, in.Clusters[i])
	}
	for i, pod := range in.Pods {
		in.Pods[i] = pod.DeepCopy()
		all = append(all, in.Pods[i])
	}
	for _, one := range all {
		if object, is := one.(view.Object); is && !reflect.ValueOf(object).IsNil() {
			view.Trim(object)
		}
	}
}

// TestExplain: from the object down to the pod, whatever the order of what it uses.
func TestExplain(t *testing.T) {
	all := clusterStories()
	maps.Copy(all, userStories())
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			test.in.Now = now
			if diff := cmp.Diff(test.want, lines(explain.Explain(test.in))); diff != "" {
				t.Error(diff)
			}
			slices.Reverse(test.in.Pods)
			slices.Reverse(test.in.Clusters)
			if diff := cmp.Diff(test.want, lines(explain.Explain(test.in))); diff != "" {
				t.Errorf("in another order: %s", diff)
			}
			slices.Reverse(test.in.Pods)
			trim(&test.in)
			if diff := cmp.Diff(test.want, lines(explain.Explain(test.in))); diff != "" {
				t.Errorf("of what the server holds: %s", diff)
			}
		})
	}
}

// TestExplain_FormerHead: of two heads the new one is on its way, and the old one is told of where it hangs.
func TestExplain_FormerHead(t *testing.T) {
	cluster := clusterOf("demo", unready(reason.HeadMissing.Of()))
	former, current := ready(podOf(cluster, "demo-head-a", "")), starting(podOf(cluster, "demo-head-b", ""))
	current.Labels[v1beta1.LabelEpoch] = "10"
	former.Labels[v1beta1.LabelEpoch] = "9"
	former.DeletionTimestamp, former.DeletionGracePeriodSeconds = new(at(5)), new(int64(30))
	chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{former, current}, Now: now})
	if have := strings.Join(lines(chain[1:]), "\n"); have != "Pod team/demo-head-b Starting: container ray is starting ()\n"+
		"Pod team/demo-head-a Terminating: has been terminating since 2026-11-21T15:34:30Z on node node1 "+
		"(Check the node; if it is permanently gone, delete the Node or taint it node.kubernetes.io/out-of-service)" {
		t.Error(have)
	}
	if soon := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{former}, Now: at(5).Add(29 * time.Second)}); len(soon) != 1 {
		t.Errorf("one that leaves in time is told of: %v", lines(soon))
	}
}

// TestExplain_StatusIsBehind: what a pod says itself, where it is worse than what the status says.
func TestExplain_StatusIsBehind(t *testing.T) {
	said := reason.ImagePulling.Of("ray:1", "node1").About("head pod demo-head")
	cluster := clusterOf("demo", unready(said), condition(v1beta1.ConditionHeadReady, metav1.ConditionFalse, said, 1))
	pod := starting(podOf(cluster, "demo-head", ""))
	for name, test := range map[string]struct {
		state corev1.ContainerState
		want  string
	}{
		"the status where it says no less": {pod.Status.ContainerStatuses[0].State, "ImagePulling"},
		"the pod where it says more": {
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}, "CrashLoop",
		},
	} {
		pod.Status.ContainerStatuses[0].State = test.state
		chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: now})
		if last := chain[len(chain)-1]; last.Code != test.want {
			t.Errorf("%s: %v", name, lines(chain))
		}
	}
}

// TestExplain_IsBounded: by links and by the length of each.
func TestExplain_IsBounded(t *testing.T) {
	long := strings.Repeat("世\xff", 20000)
	cluster := clusterOf("demo", unready(reason.Finding{Code: long, Text: long}))
	var pods []*corev1.Pod
	for i := range 400 {
		name := fmt.Sprintf("g%d", i)
		cluster.Status.Groups = append(cluster.Status.Groups, group(name, crash.About(fmt.Sprint(i))))
		pods = append(pods, unschedulable(podOf(cluster, name, name)))
	}
	chain := explain.Explain(explain.Input{Object: cluster, Pods: pods, Now: now})
	if len(chain) != 32 {
		t.Errorf("%d links", len(chain))
	}
	for _, cause := range chain {
		hold(t, cause)
	}
}

// TestExplain_OrderOfPods: the same pods in any order make the same chain.
func TestExplain_OrderOfPods(t *testing.T) {
	cluster := clusterOf("demo", unready(reason.WorkersStarting.Of(0, 9)))
	var pods []*corev1.Pod
	for i := range 9 {
		pod := podOf(cluster, fmt.Sprintf("pod-%d", i), fmt.Sprintf("g%d", i%3))
		if i%2 == 0 {
			pod = starting(pod)
		}
		pods = append(pods, unschedulable(pod))
	}
	want := lines(explain.Explain(explain.Input{Object: cluster, Pods: pods, Now: now}))
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, lines(explain.Explain(explain.Input{Object: cluster, Pods: pods, Now: now}))); diff != "" {
			t.Fatal(diff)
		}
	}
}
