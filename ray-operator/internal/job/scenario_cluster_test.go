package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestClusters(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "missing-and-made", Run: func(w *testkit.World) {
			programs(w, succeeds)
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Pending", "Ready=False ClusterMissing")
			w.Create(testkit.Cluster("demo"))
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "suspended-and-resumed", Run: func(w *testkit.World) {
			shared(w, succeeds)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
			w.Settle()
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Pending", "Ready=False ClusterSuspended")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(false) })
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "suspended-under-a-run", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) })
			w.Settle()
			w.ExpectJob("train", "Failed", "1 HeadLost Lost")
		}, KeepRecord: true}, // a suspended cluster's record comes back with its next write
		testkit.Scenario{Name: "of-another-controller", Run: func(w *testkit.World) {
			theirs := testkit.Cluster("demo")
			theirs.Spec.ManagedBy = "kueue.x-k8s.io/multikueue"
			w.Create(theirs)
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Pending", "Ready=False ClusterForeign")
			w.Ran("train", 0)
		}},
		testkit.Scenario{Name: "without-its-token", Run: withoutToken},
		testkit.Scenario{Name: "idle-is-woken", Run: func(w *testkit.World) {
			cluster := testkit.Cluster("demo")
			cluster.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 300, Action: v1beta1.IdleSuspend}
			programs(w, succeeds)
			w.Create(cluster)
			w.Ray.IdleSince = w.Clock.Now()
			w.After(10 * time.Minute)
			w.Expect("demo", "Suspended=True")
			w.Ray.IdleSince = time.Time{}
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}, AnyEpoch: true},
		testkit.Scenario{Name: "cannot-start", Run: clusterStartsLate},
	)
}

// withoutToken: the Secret of a cluster's own token goes while the cluster runs.
func withoutToken(w *testkit.World) {
	w.Create(&corev1.Secret{ObjectMeta: meta("mine"), StringData: map[string]string{v1beta1.TokenKey: "a long enough word that nobody knows"}})
	cluster := testkit.Cluster("demo")
	cluster.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken, SecretName: "mine"}
	w.Create(cluster)
	w.Settle()
	w.Expect("demo", "Ready=True")
	w.Delete(&corev1.Secret{ObjectMeta: meta("mine")})
	programs(w, succeeds)
	given(w, testkit.Job("train"))
	w.ExpectJob("train", "Pending", "Ready=False HeadUnauthorized")
	w.Ran("train", 0)
	w.Create(&corev1.Secret{ObjectMeta: meta("mine"), StringData: map[string]string{v1beta1.TokenKey: "a long enough word that nobody knows"}})
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}

func TestClustersThatGo(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "deleted-under-a-run", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Delete(w.Cluster("demo"))
			w.Settle()
			w.ExpectJob("train", "Failed", "1 "+goneOrLost(w)+" Lost")
		}, AnyLoss: true},
		testkit.Scenario{Name: "deleted-and-made-again", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), hangs, succeeds)(w)
			w.Delete(w.Cluster("demo"))
			w.Create(testkit.Cluster("demo"))
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 "+goneOrLost(w)+" Lost", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}, AnyLoss: true},
		testkit.Scenario{Name: "deleted-before-the-job-is-bound", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			w.Create(testkit.Cluster("demo"))
			w.Create(testkit.Job("train"))
			w.Settle()
			w.Delete(w.Cluster("demo"))
			w.Settle()
			w.ExpectJob("train", "Pending", "Ready=False ClusterMissing")
		}},
		testkit.Scenario{Name: "going-for-long", Run: func(w *testkit.World) {
			shared(w, succeeds)
			held := w.Cluster("demo")
			held.Finalizers = []string{"example.com/mine"}
			w.Must(w.Client.Update(w.Ctx, held))
			w.Delete(held)
			w.During(10 * time.Second)
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Pending", "Ready=False ClusterDeleting")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
			w.ExpectJob("train", "Pending", "Ready=False ClusterMissing")
		}},
		testkit.Scenario{Name: "own-deleted-under-a-run", Run: func(w *testkit.World) {
			programs(w, hangs, succeeds)
			given(w, testkit.OwnJob("train"), retries(v1beta1.Retry{Limit: 1, Scope: v1beta1.RetryCluster}))
			w.ExpectJob("train", "Running", "1")
			w.Delete(w.OwnClusters("train")[0])
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 "+goneOrLost(w)+" Lost", "2 JobSucceeded(0) Complete")
			gone(w, "train")
		}, AnyLoss: true},
		testkit.Scenario{Name: "own-deleted-before-it-runs", Run: ownDeletedEarly},
		testkit.Scenario{Name: "own-refused", Run: ownRefused},
		testkit.Scenario{Name: "own-name-is-taken", Run: ownTaken, KeepRecord: true}, // as above, "stays" is suspended
	)
}

// goneOrLost is how the first attempt was lost: an operator that does not see yet that the
// cluster was deleted takes its head for lost.
func goneOrLost(w *testkit.World) string {
	w.Helper()
	code := w.Job("train").Status.Attempts[0].Reason
	if code != "ClusterGone" && code != "HeadLost" {
		w.Fatalf("the attempt ended as %s", code)
	}
	return code
}

// ownDeletedEarly: someone deletes the cluster that a job waits for. It goes slowly, and is
// made again.
func ownDeletedEarly(w *testkit.World) {
	w.Kubelet.Idle = all
	programs(w, succeeds)
	given(w, testkit.OwnJob("train"))
	w.ExpectJob("train", "Provisioning", "Ready=False Unschedulable")
	held := w.OwnClusters("train")[0]
	w.Edit(held.Name, func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"example.com/mine"} })
	w.Delete(w.Cluster(held.Name))
	w.Settle()
	w.ExpectJob("train", "Pending", "Ready=False ClusterDeleting")
	w.Kubelet.Idle = nil
	w.Edit(held.Name, func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
	w.Settle()
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}

// ownRefused: a quota keeps the job's cluster from being made, until it is raised.
func ownRefused(w *testkit.World) {
	w.Refuse(func(obj client.Object) error {
		if _, ok := obj.(*v1beta1.ComputeCluster); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "computeclusters"}, obj.GetName(), errors.New("exceeded quota: clusters"))
		}
		return nil
	})
	programs(w, succeeds)
	w.Create(testkit.OwnJob("train"))
	w.SettleRefused()
	w.ExpectJob("train", "Provisioning", "Ready=False", "Stalled=False", "Reconciling=True")
	if said := w.JobMessage("train"); !strings.Contains(said, "exceeded quota") {
		w.Fatalf("the job says %q", said)
	}
	w.Refuse(nil)
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}

// ownTaken: someone's clusters name the job as their controller, and one has the name that the job's must have. Both are left
// alone, and the job waits for none but the one with the name.
func ownTaken(w *testkit.World) {
	job := testkit.OwnJob("train")
	w.Create(job)
	forged := func(name string) *v1beta1.ComputeCluster {
		cluster := testkit.Cluster(name)
		cluster.Spec.Suspend = new(true)
		cluster.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, v1beta1.GroupVersion.WithKind("ClusterJob"))}
		w.Create(cluster)
		return cluster
	}
	theirs, stays := forged(ownName(job, 1)), forged("stays")
	w.SettleRefused()
	w.ExpectJob("train", "Provisioning", "Ready=False NameConflict", "Stalled=True NameConflict")
	w.Delete(w.Cluster(theirs.Name))
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded")
	if left := w.Cluster(stays.Name); left.DeletionTimestamp != nil || left.Annotations[v1beta1.AnnotationReleasedAt] != "" {
		w.Errorf("the job took a cluster of somebody else's for one of its own")
	}
}
