package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
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
	if claim := sharedClaim(w); claim.Status.Phase != corev1.ClaimBound {
		phase(w, claim, corev1.ClaimBound)
	}
	w.Settle()
	w.Expect("demo", ready, "VolumeNotReady=absent")
	return sharedClaim(w)
}

// phase sets the phase of a claim.
func phase(w *testkit.World, claim *corev1.PersistentVolumeClaim, to corev1.PersistentVolumeClaimPhase) {
	w.Helper()
	claim.Status.Phase = to
	w.Must(w.Client.Status().Update(w.Ctx, claim))
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
		testkit.Scenario{Name: "retained-later-while-suspended", Run: retainedLater},
		testkit.Scenario{Name: "has-lost-its-labels", Run: lostLabels},
		testkit.Scenario{Name: "grows-and-keeps-its-entry", Run: grownClaim},
	)
}

// retainedLater is a cluster whose claim is retained while it is suspended. A later one of the same name must name the claim.
func retainedLater(w *testkit.World) {
	former := sharingBound(w, claimed())
	suspend(w, true)
	w.Settle()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.SharedVolumes[0].Claim.Retain = new(true) })
	w.Settle()
	w.Delete(w.Cluster("demo"))
	w.Settle()
	w.After(time.Minute)
	w.Create(sharing(claimed(retained)))
	w.SettleRefused()
	w.Expect("demo", "Ready=False VolumeNotReady", "Stalled=True VolumeNotReady") // who made this cluster may not read those files
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.SharedVolumes[0].Claim, c.Spec.SharedVolumes[0].ClaimName = nil, former.Name
	})
	w.Settle()
	w.Expect("demo", ready, "VolumeNotReady=absent")
	if kept := sharedClaim(w); kept.UID != former.UID || len(kept.OwnerReferences) > 0 {
		w.Fatalf("the claim that was retained is now %+v", kept.ObjectMeta)
	}
}

// lostLabels is a cluster whose claim loses a label while no pod uses it.
func lostLabels(w *testkit.World) {
	former := sharingBound(w, claimed())
	for _, label := range []string{v1beta1.LabelVolume, v1beta1.LabelCluster} { // without the second, no cache shows it
		suspend(w, true)
		w.Settle()
		claim := sharedClaim(w)
		delete(claim.Labels, label)
		w.Must(w.Client.Update(w.Ctx, claim))
		w.Settle()
		suspend(w, false)
		w.Settle()
		w.Expect("demo", ready)
		if claim := sharedClaim(w); claim.UID != former.UID || claim.Labels[label] == "" {
			w.Fatalf("the claim without label %s is now %+v", label, claim.ObjectMeta)
		}
	}
}

// grownClaim is a cluster whose claim grows, and which then drops the shared volume.
func grownClaim(w *testkit.World) {
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
		testkit.Scenario{Name: "the-users-is-of-one-node", Run: claimOfOneNode},
		testkit.Scenario{Name: "is-not-bound", Run: func(w *testkit.World) {
			w.Kubelet.Idle = func(*corev1.Pod) bool { return true }
			w.Create(mine(corev1.ClaimPending, corev1.ReadWriteMany))
			w.Create(sharing(v1beta1.SharedVolume{ClaimName: "mine"}))
			w.After(3 * time.Minute)
			w.Expect("demo", "Ready=False VolumeNotReady", "VolumeNotReady=True VolumeNotReady")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}},
		testkit.Scenario{Name: "is-somebody-elses", Run: othersVolume},
		testkit.Scenario{Name: "is-lost-and-deleted", Run: lostAndDeleted},
		testkit.Scenario{Name: "is-somebody-elses-on-a-running-cluster", Run: othersWhileRunning},
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

// claimOfOneNode is a cluster that gets workers, which cannot mount the user's claim.
func claimOfOneNode(w *testkit.World) {
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
}

// othersVolume is a cluster whose claim's name is taken for a time.
func othersVolume(w *testkit.World) {
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
}

// lostAndDeleted is a running cluster whose claim loses its volume and is then deleted.
func lostAndDeleted(w *testkit.World) {
	former := sharingBound(w, claimed())
	phase(w, former, corev1.ClaimLost)
	w.Settle()
	w.Expect("demo", ready, "VolumeNotReady=True VolumeNotReady")
	former.Finalizers = []string{"kubernetes.io/pvc-protection"}
	w.Must(w.Client.Update(w.Ctx, former))
	w.Delete(former)
	w.Scale("demo", 3)
	w.Settle()
	w.Expect("demo", "Ready=False VolumeNotReady", "HeadReady=True", "VolumeNotReady=True VolumeNotReady", "Stalled=False")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	if said := w.Message("demo", "VolumeNotReady"); !strings.Contains(said, "the operator makes an empty one") {
		w.Fatalf("the cluster says %q", said)
	}
	w.Read(former)
	former.Finalizers = nil
	w.Must(w.Client.Update(w.Ctx, former))
	w.After(time.Minute)
	sharingFinds(w)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 3})
}

// othersWhileRunning is a running cluster that gets a shared volume whose claim's name is taken, with strategy Recreate.
func othersWhileRunning(w *testkit.World) {
	theirs := &corev1.PersistentVolumeClaim{ObjectMeta: named("demo-shared-data")}
	w.Create(theirs)
	of := sharing(claimed())
	volumes := of.Spec.SharedVolumes
	of.Spec.SharedVolumes, of.Spec.UpgradeStrategy = nil, &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
	w.Create(of)
	w.Settle()
	head := w.Head("demo").UID
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.SharedVolumes = volumes })
	w.SettleRefused()
	w.Expect("demo", ready, "VolumeNotReady=True VolumeNotReady", "UpToDate=False", "Stalled=False")
	w.Scale("demo", 1) // all but new pods goes on
	w.SettleRefused()
	sizes(w, "demo", map[string]int{"": 1, "cpu": 1})
	if w.Head("demo").UID != head {
		w.Fatalf("pods were recreated for a volume that they cannot mount")
	}
	w.Delete(theirs)
	w.After(time.Minute)
	sharingFinds(w)
	w.Expect("demo", "UpToDate=True")
	if w.Head("demo").UID == head {
		w.Fatalf("the pods were not recreated")
	}
}

// sharingFinds binds the claim that was made, and finds the cluster ready.
func sharingFinds(w *testkit.World) {
	w.Helper()
	phase(w, sharedClaim(w), corev1.ClaimBound)
	w.After(time.Minute)
	w.Expect("demo", ready, "VolumeNotReady=absent")
}

// A claim that may not grow leaves the cluster as it is, and the reason stands where people look for changes that did not come.
func TestStatus_TellsOfAClaimThatMayNotGrow(t *testing.T) {
	seen := given(1)
	refused := reason.CreateRefused.Of("the storageclass must support resize")
	of := cluster.Status(demo(), seen, decide(demo(), seen), cluster.Outcome{Unchanged: &refused}, now)
	said := meta.FindStatusCondition(of.Conditions, v1beta1.ConditionUpToDate)
	if said == nil || said.Status != "False" || !strings.Contains(said.Message, "must support resize") {
		t.Errorf("the cluster says %+v", said)
	}
	if ready := meta.FindStatusCondition(of.Conditions, v1beta1.ConditionReady); ready == nil || ready.Status != "True" {
		t.Errorf("the cluster is not ready: %+v", ready)
	}
}

// Pods that are out of date stay while those that follow could not mount a shared volume.
func TestDecide_ReplacesNoPodThatNothingCouldFollow(t *testing.T) {
	for _, kind := range []v1beta1.ClusterUpgradeType{v1beta1.ClusterUpgradeRecreate, v1beta1.ClusterUpgradeRollingWorkers} {
		of, seen := demo(), given(1, pods(1, old))
		upgrade(kind, nil)(&of.Spec)
		if plan := decide(of, seen); len(plan.Exits)+len(plan.Delete) == 0 {
			t.Errorf("%s: nothing is replaced: %s", kind, plan)
		}
		seen.Volumes = []volume.Seen{{Volume: &v1beta1.SharedVolume{Name: "data"}, Name: "mine"}}
		if plan := decide(of, seen); !plan.Empty() {
			t.Errorf("%s: %s", kind, plan)
		}
	}
}

// A claim that stays as it is costs the API server little: it is looked at less and less.
func TestDecide_LooksLessAtAClaimThatStaysMissing(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: 5 * time.Second, 3 * time.Minute: 30 * time.Second} {
		of, seen := demo(), given(1)
		seen.Volumes = []volume.Seen{{Volume: &v1beta1.SharedVolume{Name: "data"}, Name: "mine"}}
		meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{
			Type: v1beta1.ConditionVolumeNotReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since)),
		})
		if plan := decide(of, seen); plan.Wake != want || plan.Unmounted == nil || plan.Makes() {
			t.Errorf("after %s it is looked at in %s, want %s; %v", since, plan.Wake, want, plan.Unmounted)
		}
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
