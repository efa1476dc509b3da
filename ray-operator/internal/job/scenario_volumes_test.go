package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// sharing gives the clusters of a job a volume whose claim is the job's.
func sharing(job *v1beta1.ClusterJob) {
	job.Spec.ClusterTemplate.Spec.SharedVolumes = []v1beta1.SharedVolume{{
		Name: "data", MountPath: "/data", Claim: &v1beta1.SharedVolumeClaim{Storage: new(resource.MustParse("1Gi"))},
	}}
}

// claimOf reads the claim of a job, and binds it.
func claimOf(w *testkit.World, job *v1beta1.ClusterJob) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(naming.JobClaim(job.UID, "data"))}
	w.Read(claim)
	if claim.Status.Phase != corev1.ClaimBound {
		claim.Status.Phase = corev1.ClaimBound
		w.Must(w.Client.Status().Update(w.Ctx, claim))
	}
	return claim
}

// uses asserts that the job's only cluster names the claim and has none of its own.
func uses(w *testkit.World, claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	clusters := w.OwnClusters("train")
	if len(clusters) != 1 {
		w.Fatalf("the job has %d clusters", len(clusters))
	}
	if volume := clusters[0].Spec.SharedVolumes[0]; volume.ClaimName != claim.Name || volume.Claim != nil {
		w.Fatalf("the cluster's shared volume is %+v", volume)
	}
}

func claimGone(w *testkit.World, claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(claim), claim); !apierrors.IsNotFound(err) {
		w.Fatalf("claim %s is still there: %v", claim.Name, err)
	}
}

// noClaims refuses claims.
func noClaims(obj client.Object) error {
	if _, is := obj.(*corev1.PersistentVolumeClaim); !is {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, obj.GetName(), errors.New("exceeded quota: storage"))
}

func TestSharedVolumes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "of-clusters-after-each-other", Run: clustersInTurn, AnyOutput: true},
		testkit.Scenario{Name: "retained-while-suspended", Run: retainedWhileSuspended},
		testkit.Scenario{Name: "somebody-elses", Run: othersVolume},
		testkit.Scenario{Name: "deleted-and-suspended", Run: suspendedWithoutClaim, AnyOutput: true},
		testkit.Scenario{Name: "somebody-elses-and-stopped", Run: stoppedBesideOthers, AnyOutput: true},
		testkit.Scenario{Name: "deleted-under-its-cluster", Run: claimDeletedUnderCluster, AnyOutput: true},
		testkit.Scenario{Name: "refused", Run: claimRefused},
	)
}

// clustersInTurn is a job whose clusters after a suspension and a failure use one claim.
func clustersInTurn(w *testkit.World) {
	programs(w, hangs, fails(1), succeeds)
	given(w, testkit.OwnJob("train"), sharing, retries(v1beta1.Retry{Limit: 1, Scope: v1beta1.RetryCluster}))
	claim := claimOf(w, w.Job("train"))
	uses(w, claim)
	suspend(w, true)
	w.Settle()
	gone(w, "train")
	suspend(w, false)
	w.Settle()
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded")
	w.Ran("train", 3)
	if now := claimOf(w, w.Job("train")); now.UID != claim.UID {
		w.Fatalf("the claim was made again")
	}
	w.Delete(w.Job("train"))
	w.Settle()
	claimGone(w, claim)
}

// retainedWhileSuspended is a job whose claim is retained and grows while it is suspended.
func retainedWhileSuspended(w *testkit.World) {
	programs(w, hangs)
	given(w, testkit.OwnJob("train"), sharing)
	claim := claimOf(w, w.Job("train"))
	suspend(w, true)
	w.Settle()
	w.EditJob("train", func(j *v1beta1.ClusterJob) {
		of := j.Spec.ClusterTemplate.Spec.SharedVolumes[0].Claim
		of.Retain, of.Storage = new(true), new(resource.MustParse("2Gi"))
	})
	w.Settle()
	w.Delete(w.Job("train"))
	w.Settle()
	w.After(time.Minute)
	w.Read(claim)
	if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" || len(claim.OwnerReferences) > 0 {
		w.Fatalf("the claim asks for %s, and its owners are %v", size.String(), claim.OwnerReferences)
	}
}

// othersVolume is a job whose claim's name is taken when it resumes.
func othersVolume(w *testkit.World) {
	programs(w, succeeds)
	given(w, testkit.OwnJob("train"), sharing, suspended)
	theirs := &corev1.PersistentVolumeClaim{ObjectMeta: meta(naming.JobClaim(w.Job("train").UID, "data"))}
	w.Create(theirs)
	suspend(w, false)
	w.SettleRefused()
	w.ExpectJob("train", "Provisioning", "Ready=False VolumeNotReady", "Stalled=True VolumeNotReady")
	gone(w, "train")
	w.Delete(theirs)
	w.After(time.Minute)
	claimOf(w, w.Job("train"))
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}

// suspendedWithoutClaim is a job that is suspended while its claim is being deleted.
func suspendedWithoutClaim(w *testkit.World) {
	programs(w, hangs, succeeds)
	given(w, testkit.OwnJob("train"), sharing)
	former := claimOf(w, w.Job("train"))
	former.Finalizers = []string{"kubernetes.io/pvc-protection"}
	w.Must(w.Client.Update(w.Ctx, former))
	w.Delete(former)
	w.Settle()
	w.ExpectJob("train", "Running")
	suspend(w, true)
	w.Settle()
	w.ExpectJob("train", "Suspended", isSuspended, "Ready=absent")
	gone(w, "train")
	w.Read(former)
	former.Finalizers = nil
	w.Must(w.Client.Update(w.Ctx, former))
	suspend(w, false)
	w.Settle()
	claimOf(w, w.Job("train"))
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded")
}

// stoppedBesideOthers is a job that is edited and stopped while its claim's name is somebody else's.
func stoppedBesideOthers(w *testkit.World) {
	programs(w, hangs)
	given(w, testkit.OwnJob("train"), sharing)
	claim := claimOf(w, w.Job("train"))
	w.Delete(claim)
	w.Create(&corev1.PersistentVolumeClaim{ObjectMeta: meta(claim.Name)})
	w.EditJob("train", func(j *v1beta1.ClusterJob) {
		j.Spec.ClusterTemplate.Spec.SharedVolumes[0].Claim.Retain = new(true)
	})
	stop(w)
	w.Settle()
	w.ExpectJob("train", "Stopped", "UpToDate=absent")
}

// claimDeletedUnderCluster is a job whose claim is deleted while it runs, and may not be made again for a time.
func claimDeletedUnderCluster(w *testkit.World) {
	programs(w, hangs)
	given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), sharing)
	former := claimOf(w, w.Job("train"))
	w.Refuse(noClaims)
	w.Delete(former)
	w.After(2 * time.Minute)
	own := w.OwnClusters("train")[0].Name
	w.Delete(w.Workers(own, "cpu")[0])
	w.After(time.Minute)
	w.ExpectJob("train", "Running", "UpToDate=False")
	w.Refuse(nil)
	w.After(time.Minute)
	claimOf(w, w.Job("train"))
	w.After(2 * time.Minute)
	w.ExpectJob("train", "Running", "UpToDate=absent")
	w.Expect(own, "Ready=True", "VolumeNotReady=absent")
}

// claimRefused is a job whose claim may not be made for a time.
func claimRefused(w *testkit.World) {
	w.Refuse(noClaims)
	programs(w, succeeds)
	w.Create(edited(testkit.OwnJob("train"), sharing))
	w.SettleRefused()
	w.ExpectJob("train", "Provisioning", "Ready=False", "Stalled=False", "Reconciling=True")
	if said := w.JobMessage("train"); !strings.Contains(said, "exceeded quota") || !strings.Contains(said, "claim shared-data-") {
		w.Fatalf("the job says %q", said)
	}
	w.Refuse(nil)
	w.After(time.Minute)
	claimOf(w, w.Job("train"))
	w.After(time.Minute)
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}
