package job

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// inQueue has a job with a cluster of its own be in a queue, with a Workload whose conditions are true, or with none.
func inQueue(alive bool, conditions ...string) func(*Seen) {
	return func(s *Seen) {
		job := train(own)
		job.Labels = map[string]string{kueue.LabelQueue: "team"}
		s.Alive = alive
		s.Queue = kueue.Seen{Queue: "team", Wanted: kueue.For("ClusterJob", job, ownCluster(job, 1), nil)}
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

// queueing is what is seen of a job in a queue, its spec, and what follows.
type queueing struct {
	seen Seen
	edit edit
	want string
}

// admissions are of jobs on their way from a queue to their end.
func admissions() map[string]queueing {
	preempted := func(r *Record) { r.Suspended = true }
	rested := newRecord()
	rested.Suspended = true
	return map[string]queueing{
		"a new one is queued and makes no cluster": {
			seen(newRecord(), noCluster, inQueue(false)), own, "Pending Queued record(1 own 1 bound \"\" ending \"\" outcome \"\") and create Workload",
		},
		"one that is not admitted makes no cluster": {seen(rested, noCluster, inQueue(false, "Other")), own, "Pending Queued and leave Workload"},
		"an admitted one makes its cluster": {
			seen(rested, noCluster, inQueue(false, "Admitted", "QuotaReserved")), own,
			"Provisioning ClusterStarting record(1 own 1 bound \"\" ending \"\" outcome \"\") make and leave Workload",
		},
		"an evicted one that runs is stopped, and keeps its quota": {
			seen(bound(), inQueue(true, "Admitted", "QuotaReserved", "Evicted")), own,
			"Suspending Stopping record(1 own 1 bound \"session_1\" ending \"JobPreempted\" outcome \"\") ask stop and leave Workload",
		},
		"one without pods any more gives its quota back": {
			seen(rested, noCluster, inQueue(false, "Admitted", "QuotaReserved", "Evicted")), own, "Pending Queued and write the status of Workload",
		},
		"one that its user suspended leaves the queue": {
			seen(bound(preempted, func(r *Record) { r.Bound = Bound{} }), noCluster, inQueue(false, "Admitted", "QuotaReserved")),
			func(j *v1beta1.ClusterJob) { own(j); j.Spec.Suspend = new(true) }, "Suspended JobSuspended and delete Workload",
		},
		"one that runs on a cluster that exists goes on": {
			seen(bound(), func(s *Seen) { s.Queue = kueue.Seen{Queue: "team", Problem: "the cluster holds the quota"} }), func(*v1beta1.ClusterJob) {},
			"Submitting Submitting ask submit and leave Workload",
		},
		"one on a cluster that exists cannot be queued": {
			seen(rested, func(s *Seen) { s.Queue = kueue.Seen{Queue: "team", Problem: "the cluster holds the quota"} }), func(*v1beta1.ClusterJob) {},
			"Pending QueueBlocked and leave Workload",
		},
	}
}

// endings are of jobs that have ended, or cannot begin.
func endings() map[string]queueing {
	done := func(r *Record) {
		r.Bound = Bound{}
		r.Outcome = Outcome{Phase: v1beta1.PhaseSucceeded, Reason: reason.JobSucceeded.Code, Text: "it is done", At: ago(5)}
	}
	invalid := func(j *v1beta1.ClusterJob) { own(j); badVariable(j) }
	keeps := func(j *v1beta1.ClusterJob) {
		own(j)
		j.Spec.Cleanup = []v1beta1.CleanupRule{{Outcome: v1beta1.OutcomeFailure, Action: v1beta1.CleanupDeleteCluster}}
	}
	rested := newRecord()
	rested.Suspended = true
	return map[string]queueing{
		"one that ended keeps its quota while its cluster is there": {
			seen(bound(done), inQueue(true, "Admitted", "QuotaReserved")), own, "Succeeded JobSucceeded free and leave Workload",
		},
		"one that ended lets a cluster go that it keeps, when it is evicted": {
			seen(bound(done), inQueue(true, "Admitted", "QuotaReserved", "Evicted")), keeps,
			"Succeeded JobSucceeded free and leave Workload",
		},
		"one that ended keeps its cluster where it never was queued": {
			seen(bound(done), inQueue(true)), keeps, "Succeeded JobSucceeded keep and leave Workload",
		},
		"one that ended says so when nothing is left": {
			seen(bound(done), noCluster, inQueue(false, "Admitted", "QuotaReserved")), own, "Succeeded JobSucceeded and write the status of Workload",
		},
		"an invalid one whose cluster starts keeps its quota": {
			seen(newRecord(), inQueue(true, "Admitted", "QuotaReserved")), invalid, "Pending InvalidSpec stalled and leave Workload",
		},
		"an invalid one that is evicted lets its cluster go": {
			seen(newRecord(), inQueue(true, "Admitted", "QuotaReserved", "Evicted")), invalid,
			"Pending InvalidSpec record(1 own 2 bound \"\" ending \"\" outcome \"\") free stalled and leave Workload",
		},
		"an invalid one without a cluster leaves the queue": {
			seen(rested, noCluster, inQueue(false, "Admitted", "QuotaReserved")), invalid, "Pending InvalidSpec stalled and delete Workload",
		},
	}
}

func TestQueue_HoldsAndLets(t *testing.T) {
	for _, cases := range []map[string]queueing{admissions(), endings()} {
		for name, test := range cases {
			plan := decide(train(test.edit), test.seen)
			if got := gist(plan) + " and " + plan.Queue.Step.String() + " Workload"; got != test.want {
				t.Errorf("%s:\n%s, want\n%s", name, got, test.want)
			}
		}
	}
}

func TestQueue_LooksForTheLastPod(t *testing.T) {
	rested := newRecord()
	rested.Suspended = true
	if plan := decide(train(own), seen(rested, noCluster, inQueue(true))); plan.Wake != time.Second {
		t.Errorf("a job whose Workload is gone looks again in %s, while pods of its cluster end", plan.Wake)
	}
}

func TestOwnCluster_IsInTheQueueOfItsJob(t *testing.T) {
	for queue, want := range map[string]string{"": "", "team": "team"} {
		job := train(own)
		job.Labels = map[string]string{kueue.LabelQueue: queue}
		job.Spec.ClusterTemplate.Metadata.Labels = map[string]string{kueue.LabelQueue: "other", "team": "a"}
		made := ownCluster(job, 1)
		if got := kueue.QueueOf(made); got != want || made.Labels["team"] != "a" {
			t.Errorf("the cluster of a job in queue %q has the labels %v", queue, made.Labels)
		}
	}
}

func TestSeeQueue_AsksForTheClusterThatRuns(t *testing.T) {
	two, five, job := int32(2), int32(5), train(own)
	job.Labels = map[string]string{kueue.LabelQueue: "team"}
	job.Spec.ClusterTemplate.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: "cpu", Replicas: &two}}
	there := ownCluster(job, 1)
	job.Spec.ClusterTemplate.Spec.WorkerGroups[0].Replicas = &five
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{Client: reader, Queue: &queue.Keeper{Client: reader}}
	for want, cluster := range map[int32]*v1beta1.ComputeCluster{2: there, 5: nil} {
		seen := Seen{Record: newRecord(), Cluster: cluster}
		if err := r.seeQueue(t.Context(), job, &seen); err != nil {
			t.Fatal(err)
		}
		if got := seen.Queue.Wanted.Spec.PodSets[1].Count; got != want {
			t.Errorf("with a cluster %v: the job asks for %d workers, want %d", cluster != nil, got, want)
		}
	}
}
