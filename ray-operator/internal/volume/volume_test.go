package volume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

type claim = corev1.PersistentVolumeClaim

// demo is a cluster with a shared volume of a claim of its own.
func demo(edits ...func(*v1beta1.SharedVolumeClaim)) *v1beta1.ComputeCluster {
	of := &v1beta1.SharedVolumeClaim{Storage: new(resource.MustParse("10Gi"))}
	for _, edit := range edits {
		edit(of)
	}
	return &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "demo-1"},
		Spec:       v1beta1.ComputeClusterSpec{SharedVolumes: []v1beta1.SharedVolume{{Name: "data", MountPath: "/data", Claim: of}}},
	}
}

func retained(c *v1beta1.SharedVolumeClaim) { c.Retain = new(true) }

func sized(text string) func(*v1beta1.SharedVolumeClaim) {
	return func(c *v1beta1.SharedVolumeClaim) { c.Storage = new(resource.MustParse(text)) }
}

// wanted is the claim of a cluster's shared volume.
func wanted(cluster *v1beta1.ComputeCluster) *claim {
	return desired.SharedClaim(cluster, &cluster.Spec.SharedVolumes[0])
}

// found is such a claim as it may stand there: bound, of an age.
func found(edits ...func(*claim)) *claim {
	there := wanted(demo())
	there.UID, there.CreationTimestamp, there.Status.Phase = "claim-1", metav1.NewTime(now.Add(-time.Minute)), corev1.ClaimBound
	for _, edit := range edits {
		edit(there)
	}
	return there
}

func ownedBy(uid string) func(*claim) {
	return func(c *claim) { c.OwnerReferences[0].UID = types.UID(uid) }
}

func unowned(c *claim) { c.OwnerReferences = nil }

func madeFor(uid string) func(*claim) {
	return func(c *claim) { c.Annotations[v1beta1.AnnotationVolumeOwner] = uid }
}

func terminating(c *claim) { c.DeletionTimestamp = new(metav1.NewTime(now)) }

func in(phase corev1.PersistentVolumeClaimPhase) func(*claim) {
	return func(c *claim) { c.Status.Phase = phase }
}

func modes(list ...corev1.PersistentVolumeAccessMode) func(*claim) {
	return func(c *claim) { c.Spec.AccessModes = list }
}

func TestPresenceOf_JudgesByTheOwnersUID(t *testing.T) {
	t.Parallel()
	owner := *metav1.NewControllerRef(demo(), v1beta1.GroupVersion.WithKind("ComputeCluster"))
	for name, c := range map[string]struct {
		found *claim
		want  reconcile.Presence
	}{
		"nothing is absent":                       {nil, reconcile.Absent},
		"the cluster's is ours":                   {found(), reconcile.Ours},
		"a former cluster's goes":                 {found(ownedBy("demo-0")), reconcile.Terminating},
		"one that is deleted goes":                {found(terminating), reconcile.Terminating},
		"one that was retained is ours":           {found(unowned), reconcile.Ours},
		"a retained one that is deleted goes":     {found(unowned, terminating), reconcile.Terminating},
		"labels do not matter":                    {found(func(c *claim) { c.Labels = nil }), reconcile.Ours},
		"nor those of one that was retained":      {found(unowned, func(c *claim) { c.Labels = nil }), reconcile.Ours},
		"one that a former cluster left is not":   {found(unowned, madeFor("demo-0")), reconcile.Foreign},
		"one with another kind of owner is not":   {found(func(c *claim) { c.OwnerReferences[0].Kind = "Other"; c.OwnerReferences[0].UID = "x" }), reconcile.Foreign},
		"one without annotation and owner is not": {found(unowned, func(c *claim) { c.Annotations = nil }), reconcile.Foreign},
	} {
		if have := volume.PresenceOf(c.found, owner); have != c.want {
			t.Errorf("%s: %d, want %d", name, have, c.want)
		}
	}
}

func TestChanges_ReleaseFirstAndGrowThen(t *testing.T) {
	t.Parallel()
	class := func(name string) func(*claim) { return func(c *claim) { c.Spec.StorageClassName = new(name) } }
	unlabelled := func(c *claim) { delete(c.Labels, v1beta1.LabelVolume) }
	for name, c := range map[string]struct {
		found  *claim
		wanted *v1beta1.ComputeCluster
		// changes are "SIZE WHETHER OWNED", one after the other.
		changes string
	}{
		"as wanted":                        {found(), demo(), ""},
		"larger is wanted":                 {found(), demo(sized("20Gi")), "20Gi true"},
		"the user made it larger":          {found(), demo(sized("5Gi")), ""},
		"to be retained":                   {found(), demo(retained), "10Gi false"},
		"to be retained, and larger":       {found(), demo(retained, sized("20Gi")), "10Gi false, 20Gi false"},
		"to be retained, but not smaller":  {found(), demo(retained, sized("5Gi")), "10Gi false"},
		"retained before, and as wanted":   {found(unowned), demo(), ""},
		"retained before, and larger":      {found(unowned), demo(sized("20Gi")), "20Gi false"},
		"its label is lost":                {found(unlabelled), demo(), "10Gi true"},
		"its label is lost, and retained":  {found(unlabelled, unowned), demo(retained), "10Gi false"},
		"its annotation is lost":           {found(func(c *claim) { c.Annotations = nil }), demo(), "10Gi true"},
		"others' labels stay":              {found(func(c *claim) { c.Labels["mine"] = "yes" }), demo(), ""},
		"another class, which never moves": {found(class("nfs")), demo(sized("20Gi"), func(c *v1beta1.SharedVolumeClaim) { c.StorageClassName = new("other") }), "20Gi true"},
	} {
		var have []string
		for _, change := range volume.Changes(c.found, wanted(c.wanted)) {
			size := change.Wanted.Spec.Resources.Requests[corev1.ResourceStorage]
			have = append(have, fmt.Sprint(size.String(), " ", len(change.Wanted.OwnerReferences) > 0))
			if ptr.Deref(change.Wanted.Spec.StorageClassName, "") != ptr.Deref(c.found.Spec.StorageClassName, "") || change.Wanted.Annotations[v1beta1.AnnotationVolumeOwner] != "demo-1" {
				t.Errorf("%s: becomes %+v", name, change.Wanted)
			}
		}
		if told := strings.Join(have, ", "); told != c.changes {
			t.Errorf("%s: %q, want %q", name, told, c.changes)
		}
	}
}

// A class that does not allow expansion refuses a larger size, and must not keep the claim from being retained.
func TestApplyChanges_RetainsWhatMayNotGrow(t *testing.T) {
	t.Parallel()
	there := found()
	w := testkit.NewWorld(t)
	below, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatal("the world's client cannot watch")
	}
	w.Must(below.Create(t.Context(), there, client.FieldOwner(kube.FieldOwner)))
	store := interceptor.NewClient(below, interceptor.Funcs{
		Apply: func(ctx context.Context, to client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if text, err := json.Marshal(config); err != nil || strings.Contains(string(text), "20Gi") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "demo-shared-data", errors.New("the storageclass must support resize"))
			}
			return to.Apply(ctx, config, opts...)
		},
	})
	refused, err := volume.ApplyChanges(t.Context(), &kube.Writer{Client: store, Live: store}, volume.Changes(there, wanted(demo(retained, sized("20Gi")))))
	if err != nil || refused == nil || !strings.Contains(refused.Text, "the new size of claim demo-shared-data") || !strings.Contains(refused.Text, "must support resize") {
		t.Errorf("refused: %v, %v", refused, err)
	}
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(there), there); err != nil || len(there.OwnerReferences) > 0 {
		t.Errorf("the claim has the owners %v: %v", there.OwnerReferences, err)
	}
}

func event(kind, why, message string, at time.Duration) corev1.Event {
	return corev1.Event{Type: kind, Reason: why, Message: message, LastTimestamp: metav1.NewTime(now.Add(at))}
}

func TestObstacle_SaysWhatKeepsPodsFromMounting(t *testing.T) {
	t.Parallel()
	waits := event(corev1.EventTypeNormal, "WaitForFirstConsumer", "waiting for first consumer to be created before binding", -5*time.Second)
	fails := event(corev1.EventTypeWarning, "ProvisioningFailed", "storageclass.storage.k8s.io \"nfs\" not found", -time.Second)
	none := event(corev1.EventTypeNormal, "FailedBinding", "no persistent volumes available for this claim and no storage class is set", -time.Second)
	works := event(corev1.EventTypeNormal, "ExternalProvisioning", "Waiting for a volume to be created", -time.Second)
	old := func(c *claim) { c.CreationTimestamp = metav1.NewTime(now.Add(-3 * time.Minute)) }
	pending := in(corev1.ClaimPending)
	for name, c := range map[string]struct {
		seen    volume.Seen
		isAlone bool
		want    string
		isFinal bool
	}{
		"bound":                              {volume.Seen{Found: found()}, false, "", false},
		"none yet of ours":                   {volume.Seen{Wanted: wanted(demo())}, false, "", false},
		"none of the user's":                 {volume.Seen{}, false, "does not exist. Create PersistentVolumeClaim data, or correct claimName", true},
		"deleted":                            {volume.Seen{Found: found(terminating)}, false, "is being deleted. Wait until it is gone", true},
		"lost":                               {volume.Seen{Found: found(in(corev1.ClaimLost))}, false, "has lost its PersistentVolume. Restore", true},
		"deleted, of ours":                   {volume.Seen{Wanted: wanted(demo()), Found: found(terminating)}, false, "is being deleted. Copy its files elsewhere: once no pod uses it", true},
		"deleted, of the job's":              {volume.Seen{IsJobs: true, Found: found(terminating)}, false, "is being deleted. Copy its files elsewhere: once no pod uses it", true},
		"lost, of ours":                      {volume.Seen{Wanted: wanted(demo()), Found: found(in(corev1.ClaimLost))}, false, "Restore the PersistentVolume, or delete claim data: the operator then", true},
		"none of the job's":                  {volume.Seen{IsJobs: true}, false, "does not exist. Wait until the operator has made", true},
		"of a former cluster":                {volume.Seen{Wanted: wanted(demo()), Found: found(ownedBy("demo-0"))}, false, "belongs to a deleted ComputeCluster of this name, and is deleted with it. Wait", true},
		"somebody else's, to be judged anew": {volume.Seen{Wanted: wanted(demo()), Found: found(unowned, madeFor("demo-0"))}, false, "", false},
		"of one node":                        {volume.Seen{Found: found(modes(corev1.ReadWriteOnce))}, false, "its access modes lack ReadWriteMany. Use a claim with access mode ReadWriteMany", true},
		"of one node, for a head alone":      {volume.Seen{Found: found(modes(corev1.ReadWriteOnce))}, true, "", false},
		"of readers, to be written":          {volume.Seen{Found: found(modes(corev1.ReadOnlyMany))}, false, "lack ReadWriteMany", true},
		"waits for a pod":                    {volume.Seen{Found: found(pending, old), Events: []corev1.Event{fails, waits}[1:]}, false, "", false},
		"waits for a pod, said last":         {volume.Seen{Found: found(pending, old), Events: []corev1.Event{event(corev1.EventTypeWarning, "ProvisioningFailed", "x", -time.Hour), waits}}, false, "", false},
		"cannot be provisioned":              {volume.Seen{Found: found(pending), Events: []corev1.Event{fails, waits}}, false, "is not bound: storageclass.storage.k8s.io \"nfs\" not found. Check why claim data is not bound", false},
		"has no class":                       {volume.Seen{Found: found(pending), Events: []corev1.Event{none}}, false, "is not bound: no persistent volumes available", false},
		"failed, and is tried again":         {volume.Seen{Found: found(pending, old), Events: []corev1.Event{event(corev1.EventTypeWarning, "ProvisioningFailed", "quota is used up", -time.Minute), works}}, false, "quota is used up", false},
		"waits for a pod, and is tried":      {volume.Seen{Found: found(pending, old), Events: []corev1.Event{waits, works}}, false, "", false},
		"is provisioned":                     {volume.Seen{Found: found(pending), Events: []corev1.Event{works}}, false, "", false},
		"is provisioned for long":            {volume.Seen{Found: found(pending, old), Events: []corev1.Event{works}}, false, "is not bound. Check why", false},
		"is not bound, and nobody says why":  {volume.Seen{Found: found(pending)}, false, "", false},
	} {
		c.seen.Volume, c.seen.Name = &v1beta1.SharedVolume{Name: "data", MountPath: "/data"}, "data"
		c.seen.Owner = *metav1.NewControllerRef(demo(), v1beta1.GroupVersion.WithKind("ComputeCluster"))
		have := c.seen.Obstacle(!c.isAlone, now)
		switch {
		case c.want == "" && have != nil:
			t.Errorf("%s: %s", name, have.Text)
		case c.want == "":
		case have == nil:
			t.Errorf("%s: no obstacle", name)
		case have.Code != reason.VolumeNotReady.Code || !strings.Contains(have.Text, c.want) || have.IsFinal != c.isFinal:
			t.Errorf("%s: %q, final %v", name, have.Text, have.IsFinal)
		}
	}
	reads := volume.Seen{Volume: &v1beta1.SharedVolume{Name: "data", ReadOnly: new(true)}, Name: "data", Found: found(modes(corev1.ReadOnlyMany))}
	if have := reads.Obstacle(true, now); have != nil {
		t.Errorf("readers of ReadOnlyMany: %s", have.Text)
	}
}

func TestGivenClaims_AreReadSeldom(t *testing.T) {
	t.Parallel()
	var given volume.GivenClaims
	reads := 0
	look := func(at time.Duration, there *claim) *claim {
		have, err := given.Of(types.NamespacedName{Namespace: "team", Name: "data"}, now.Add(at), func() (*claim, error) {
			reads++
			return there, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return have
	}
	if look(0, nil) != nil || look(time.Second, found()) != nil || look(5*time.Second, found()) == nil || reads != 2 {
		t.Errorf("%d reads of a claim that comes, want 2", reads)
	}
	if look(60*time.Second, nil) == nil || look(70*time.Second, nil) != nil || reads != 3 {
		t.Errorf("%d reads of a claim that is bound and goes, want 3", reads)
	}
	look(10*time.Minute, nil)
	if look(20*time.Minute, found(in(corev1.ClaimPending))); reads != 5 {
		t.Errorf("%d reads, want 5", reads)
	}
}
