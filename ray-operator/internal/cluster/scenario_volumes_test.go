package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// sharing is a cluster whose pods share a volume.
func sharing(volume v1beta1.SharedVolume) *v1beta1.ComputeCluster {
	of := testkit.Cluster("demo", testkit.Group("cpu", 2))
	volume.Name, volume.MountPath = "data", "/data"
	of.Spec.SharedVolumes = []v1beta1.SharedVolume{volume}
	return of
}

func claimed(edits ...func(*v1beta1.SharedVolumeClaim)) v1beta1.SharedVolume {
	claim := &v1beta1.SharedVolumeClaim{Storage: new(resource.MustParse("1Gi"))}
	for _, edit := range edits {
		edit(claim)
	}
	return v1beta1.SharedVolume{Claim: claim}
}

func retained(c *v1beta1.SharedVolumeClaim) { c.Retain = new(true) }

func sharedClaim(w *testkit.World) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("demo-shared-data")}
	w.Read(claim)
	return claim
}

// bound makes the cluster and binds its claim.
func sharingBound(w *testkit.World, volume v1beta1.SharedVolume) *corev1.PersistentVolumeClaim {
	w.Helper()
	w.Create(sharing(volume))
	w.Settle()
	claim := sharedClaim(w)
	if claim.Status.Phase != corev1.ClaimBound {
		claim.Status.Phase = corev1.ClaimBound
		w.Must(w.Client.Status().Update(w.Ctx, claim))
	}
	w.Settle()
	w.Expect("demo", ready, "VolumeNotReady=absent")
	return sharedClaim(w)
}

// mine is a claim of the user's.
func mine(phase corev1.PersistentVolumeClaimPhase, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: named("mine"), Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

func TestSharedVolumes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "goes-with-its-cluster", Run: func(w *testkit.World) {
			claim := sharingBound(w, claimed())
			for _, p := range w.Pods("demo") {
				if last := p.Spec.Volumes; !hasClaim(last, claim.Name) {
					w.Fatalf("pod %s has the volumes %v", p.Name, last)
				}
			}
			suspend(w, true)
			w.Settle()
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready)
			if sharedClaim(w).UID != claim.UID {
				w.Fatalf("the claim was made again after a suspension")
			}
			w.Delete(w.Cluster("demo"))
			w.Settle()
			nothingLeft(w)
			gone(w, claim)
		}},
		testkit.Scenario{Name: "recreated-at-once", Run: func(w *testkit.World) {
			former := sharingBound(w, claimed())
			w.Delete(w.Cluster("demo"))
			if again := sharingBound(w, claimed()); again.UID == former.UID {
				w.Fatalf("the claim of the former cluster is used")
			}
		}},
		testkit.Scenario{Name: "retained-later-while-suspended", Run: func(w *testkit.World) {
			former := sharingBound(w, claimed())
			suspend(w, true)
			w.Settle()
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.SharedVolumes[0].Claim.Retain = new(true) })
			w.Settle()
			w.Delete(w.Cluster("demo"))
			w.Settle()
			w.After(time.Minute)
			if again := sharingBound(w, claimed(retained)); again.UID != former.UID {
				w.Fatalf("the claim that was retained is not used")
			}
		}},
		testkit.Scenario{Name: "grows-and-keeps-its-entry", Run: func(w *testkit.World) {
			sharingBound(w, claimed())
			kept := testkit.UIDs(w.Pods("demo"))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) {
				c.Spec.SharedVolumes[0].Claim.Storage = new(resource.MustParse("2Gi"))
			})
			w.Settle()
			if size := sharedClaim(w).Spec.Resources.Requests[corev1.ResourceStorage]; size.String() != "2Gi" {
				w.Fatalf("the claim asks for %s", size.String())
			}
			w.Expect("demo", ready, "UpToDate=True")
			untouched(w, kept, w.Pods("demo"))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.SharedVolumes = nil })
			w.Settle()
			w.Expect("demo", ready, "UpToDate=False")
			sharedClaim(w)
		}},
	)
}

func TestSharedVolumesThatAreNotReady(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "the-users-comes-late", Run: func(w *testkit.World) {
			w.Create(sharing(v1beta1.SharedVolume{ClaimName: "mine"}))
			w.Settle()
			w.Expect("demo", "Ready=False VolumeNotReady", "VolumeNotReady=True VolumeNotReady", "Stalled=False")
			if said := w.Message("demo", "Ready"); !strings.Contains(said, "claim mine of shared volume data does not exist") {
				w.Fatalf("the cluster says %q", said)
			}
			sizes(w, "demo", map[string]int{"": 0, "cpu": 0})
			w.Create(mine(corev1.ClaimBound, corev1.ReadWriteMany))
			w.After(time.Minute)
			w.Expect("demo", ready, "VolumeNotReady=absent")
		}},
		testkit.Scenario{Name: "the-users-is-of-one-node", Run: func(w *testkit.World) {
			w.Create(mine(corev1.ClaimBound, corev1.ReadWriteOnce))
			alone := sharing(v1beta1.SharedVolume{ClaimName: "mine"})
			groups := alone.Spec.WorkerGroups
			alone.Spec.WorkerGroups = nil
			w.Create(alone)
			w.Settle()
			w.Expect("demo", ready)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = groups })
			w.Settle()
			w.Expect("demo", "Ready=False VolumeNotReady", "HeadReady=True", "VolumeNotReady=True VolumeNotReady")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 0})
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = nil })
			w.Settle()
			w.Expect("demo", ready, "VolumeNotReady=absent")
		}},
		testkit.Scenario{Name: "is-not-bound", Run: func(w *testkit.World) {
			w.Kubelet.Idle = func(*corev1.Pod) bool { return true }
			w.Create(mine(corev1.ClaimPending, corev1.ReadWriteMany))
			w.Create(sharing(v1beta1.SharedVolume{ClaimName: "mine"}))
			w.After(3 * time.Minute)
			w.Expect("demo", "Ready=False VolumeNotReady", "VolumeNotReady=True VolumeNotReady")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}},
		testkit.Scenario{Name: "is-somebody-elses", Run: func(w *testkit.World) {
			theirs := &corev1.PersistentVolumeClaim{ObjectMeta: named("demo-shared-data")}
			w.Create(theirs)
			version := theirs.ResourceVersion
			w.Create(sharing(claimed()))
			w.SettleRefused()
			w.Expect("demo", "Ready=False VolumeNotReady", "VolumeNotReady=True VolumeNotReady", "Stalled=True VolumeNotReady")
			sizes(w, "demo", map[string]int{"": 0, "cpu": 0})
			w.Read(theirs)
			if theirs.ResourceVersion != version {
				w.Fatalf("someone else's claim was written")
			}
			w.Delete(theirs)
			w.After(time.Minute)
			sharingFinds(w)
		}},
		testkit.Scenario{Name: "may-not-be-made", Run: func(w *testkit.World) {
			refuse(w, func(obj client.Object) bool { return obj.GetLabels()[v1beta1.LabelVolume] != "" })
			w.Create(sharing(claimed()))
			w.SettleRefused()
			w.Expect("demo", "Ready=False", "Stalled=False", "Reconciling=True")
			w.Refuse(nil)
			w.After(time.Minute)
			sharingFinds(w)
		}},
	)
}

// sharingFinds binds the claim that was made, and finds the cluster ready.
func sharingFinds(w *testkit.World) {
	w.Helper()
	claim := sharedClaim(w)
	claim.Status.Phase = corev1.ClaimBound
	w.Must(w.Client.Status().Update(w.Ctx, claim))
	w.After(time.Minute)
	w.Expect("demo", ready, "VolumeNotReady=absent")
}

// A claim that may not grow leaves the cluster as it is, and the reason stands where people look for changes that did not come.
func TestStatus_TellsOfAClaimThatMayNotGrow(t *testing.T) {
	seen := given(1)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "demo-shared-data", errors.New("the storageclass must support resize"))
	of := cluster.Status(demo(), seen, decide(demo(), seen), cluster.Outcome{Ungrown: refused}, now)
	said := meta.FindStatusCondition(of.Conditions, v1beta1.ConditionUpToDate)
	if said == nil || said.Status != "False" || !strings.Contains(said.Message, "must support resize") {
		t.Errorf("the cluster says %+v", said)
	}
	if ready := meta.FindStatusCondition(of.Conditions, v1beta1.ConditionReady); ready == nil || ready.Status != "True" {
		t.Errorf("the cluster is not ready: %+v", ready)
	}
}

func hasClaim(volumes []corev1.Volume, claim string) bool {
	for _, volume := range volumes {
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim {
			return true
		}
	}
	return false
}
