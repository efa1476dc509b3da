package phases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// What a cluster may say.
var (
	headReady, workersReady = since(v1beta1.ConditionHeadReady, true, 5), since(v1beta1.ConditionWorkersReady, true, 8)
	ready                   = since(v1beta1.ConditionReady, true, 8)
	headStarts              = waiting(reason.HeadStarting.Of("demo-head"))
)

// but is an object with a change.
func but[T any](object T, change func(T)) T {
	change(object)
	return object
}

// numbered is a head of an epoch, made after so many minutes.
func numbered(epoch, name string, minutes int) *corev1.Pod {
	return but(headOf(""), func(p *corev1.Pod) {
		p.Name, p.Labels[v1beta1.LabelEpoch], p.CreationTimestamp = name, epoch, at(minutes)
	})
}

// clusterPhases are clusters with their pods, and how far they are.
var clusterPhases = map[string]struct {
	cluster *v1beta1.ComputeCluster
	pods    []*corev1.Pod
	want    string
}{
	"accepted until it has a head": {
		clusterOf(waiting(reason.HeadMissing.Of())), []*corev1.Pod{nil, but(headOf("node1"), func(p *corev1.Pod) { p.DeletionTimestamp = new(at(60)) })},
		"Accepted Current 0-? (there is no head pod yet), HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"failed where a person has to act": {
		clusterOf(waiting(reason.InvalidSpec.Of("x")), since(v1beta1.ConditionStalled, true, 1)), nil,
		"Accepted Failed 0-? (the spec is invalid: x), HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"waits for the scheduler": {
		clusterOf(headStarts), []*corev1.Pod{headOf("")},
		"Accepted Done 0-2, HeadScheduled Current 2-? (Pod demo-head: cannot be scheduled: scheduler default-scheduler has not looked at it), HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"waits for Ray": {
		clusterOf(headStarts), []*corev1.Pod{headOf("node1")},
		"Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Current 3-? (Pod demo-head: its containers are being created on node node1), " +
			"WorkersReady Pending, Ready Pending",
	},
	"what the status knows of a head without its pod": {
		but(clusterOf(headStarts), func(c *v1beta1.ComputeCluster) {
			c.Status.Head = &v1beta1.HeadStatus{PodName: "demo-head", NodeName: "node1", CreationTime: new(at(2))}
		}), nil,
		"Accepted Done 0-2, HeadScheduled Done 2-?, HeadReady Current ?-? (head pod demo-head is starting), WorkersReady Pending, Ready Pending",
	},
	"waits for workers": {
		clusterOf(waiting(reason.WorkersStarting.Of(1, 2)), headReady), []*corev1.Pod{readyHead()},
		"Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Done 3-5, WorkersReady Current 5-? (1 of 2 workers are ready), Ready Pending",
	},
	"held though all are ready": {
		clusterOf(waiting(reason.StoreLoading.Of("redis:6379")), headReady, workersReady), []*corev1.Pod{readyHead()},
		"Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Done 3-5, WorkersReady Done 5-8, " +
			"Ready Current 8-? (the control store at redis:6379 reads its data from disk)",
	},
	"ready": {
		clusterOf(ready, headReady, workersReady), []*corev1.Pod{readyHead()},
		"Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Done 3-5, WorkersReady Done 5-8, Ready Done 8-?",
	},
	"ready without groups": {
		but(clusterOf(ready, headReady, workersReady), func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = nil }), []*corev1.Pod{headOf("node1")}, "Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Done 3-5, Ready Done 8-?",
	},
	"a head that came back after the workers has no time": {
		clusterOf(ready, since(v1beta1.ConditionHeadReady, true, 30), workersReady), []*corev1.Pod{headOf("node1")},
		"Accepted Done 0-2, HeadScheduled Done 2-3, HeadReady Done 3-?, WorkersReady Done ?-8, Ready Done 8-?",
	},
	"a lost head since the cluster is not ready": {
		but(clusterOf(since(v1beta1.ConditionReady, false, 20)), func(c *v1beta1.ComputeCluster) { c.Status.Epoch = 2 }), nil, "Accepted Current 20-? (because), HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"the first head lost since it was made": {
		but(clusterOf(since(v1beta1.ConditionReady, false, 20)), func(c *v1beta1.ComputeCluster) { c.Status.Epoch = 1 }), nil,
		"Accepted Current 0-? (because), HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"a later head of which nothing is known": {
		but(clusterOf(ready), func(c *v1beta1.ComputeCluster) { c.Status.Epoch = 2 }), nil,
		"Accepted Done ?-?, HeadScheduled Done ?-?, HeadReady Done ?-?, WorkersReady Done ?-?, Ready Done 8-?",
	},
	"the head that the status names": {
		but(clusterOf(headStarts), func(c *v1beta1.ComputeCluster) { c.Status.Head = &v1beta1.HeadStatus{UID: "named"} }),
		[]*corev1.Pod{
			numbered("9", "a", 30), but(numbered("1", "b", 2), func(p *corev1.Pod) { p.UID = "named" }),
		},
		"Accepted Done 0-2, HeadScheduled Current 2-? (Pod a: cannot be scheduled: scheduler default-scheduler has not looked at it), HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"the newest head": {
		clusterOf(headStarts), []*corev1.Pod{numbered("9", "c", 20), numbered("10", "b", 30), numbered("10", "a", 40), numbered("2", "d", 10)},
		"Accepted Done 0-40, HeadScheduled Current 40-? (Pod a: cannot be scheduled: scheduler default-scheduler has not looked at it), HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"a head of an epoch that is none": {
		clusterOf(headStarts), []*corev1.Pod{numbered("-1", "a", 20)},
		"Accepted Done 0-20, HeadScheduled Current 20-? (Pod a: cannot be scheduled: scheduler default-scheduler has not looked at it), HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"no pod of others": {
		clusterOf(waiting(reason.HeadMissing.Of())), []*corev1.Pod{
			but(headOf(""), func(p *corev1.Pod) { p.Namespace = "other" }), but(readyHead(), func(p *corev1.Pod) { p.Labels = nil }),
			but(headOf(""), func(p *corev1.Pod) { p.OwnerReferences[0].UID = "x" }), but(headOf(""), func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }),
			but(headOf(""), func(p *corev1.Pod) { p.OwnerReferences[0].Controller = new(false) }),
		}, "Accepted Current 0-? (there is no head pod yet), HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"suspended": {
		clusterOf(since(v1beta1.ConditionSuspended, true, 30), waiting(reason.SuspendedBySpec.Of())), nil,
		"Suspended Current 30-? (suspended by spec.suspend), Accepted Pending, HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"on its way to be suspended": {
		but(clusterOf(since(v1beta1.ConditionSuspended, false, 30), waiting(reason.Suspending.Of(2))),
			func(c *v1beta1.ComputeCluster) { c.Status.Phase = v1beta1.PhaseSuspending }), nil,
		"Suspended Current ?-? (2 pods are still terminating), Accepted Pending, HeadScheduled Pending, HeadReady Pending, WorkersReady Pending, Ready Pending",
	},
	"deleted": {
		but(clusterOf(ready), func(c *v1beta1.ComputeCluster) { c.DeletionTimestamp = new(at(40)) }), nil,
		"Deleting Current 40-? (because)",
	},
}

func TestOf_Cluster(t *testing.T) {
	for name, test := range clusterPhases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, draw(test.cluster, nil, test.pods...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
