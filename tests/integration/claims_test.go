package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// claiming makes a cluster whose workers have a claim each, and as many volumes for them,
// which Kubernetes binds: no storage provider runs here. It waits until the cluster is ready.
func claiming(t *testing.T, namespace string, workers int32, volumes int) types.NamespacedName {
	t.Helper()
	class, room := namespace, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	for i := range volumes {
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", class, i)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: class, Capacity: room, AccessModes: modes,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			},
		}
		must(t, shared.Create(t.Context(), volume))
		t.Cleanup(func() { must(t, shared.Delete(context.WithoutCancel(t.Context()), volume)) })
	}
	cluster := newCluster(namespace, "claiming", workers)
	cluster.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: room},
		},
	}}
	must(t, shared.Create(t.Context(), cluster))
	name := client.ObjectKeyFromObject(cluster)
	ready(t, name)
	return name
}

// claimsOf are the UIDs of a cluster's claims by their names.
func claimsOf(ctx context.Context, name types.NamespacedName) (map[string]types.UID, error) {
	var list corev1.PersistentVolumeClaimList
	err := shared.List(ctx, &list, client.InNamespace(name.Namespace), client.MatchingLabels{v1beta1.LabelCluster: name.Name})
	found := map[string]types.UID{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].UID
	}
	return found, err
}

// mounted is the name of the claim that a worker has.
func mounted(t *testing.T, worker *corev1.Pod) string {
	t.Helper()
	for _, volume := range worker.Spec.Volumes {
		if volume.Name == "data" && volume.PersistentVolumeClaim != nil {
			return volume.PersistentVolumeClaim.ClaimName
		}
	}
	t.Fatalf("worker %s has no claim", worker.Name)
	return ""
}

// claimed checks that a ready cluster's workers have a claim each, and gives the claims.
func claimed(t *testing.T, name types.NamespacedName) map[string]types.UID {
	t.Helper()
	claims, err := claimsOf(t.Context(), name)
	must(t, err)
	workers := podsOfReady(t, name)
	used := map[string]bool{}
	for i := range workers {
		claim := mounted(t, &workers[i])
		if claims[claim] == "" {
			t.Errorf("worker %s has the claim %s, which is not there", workers[i].Name, claim)
		}
		used[claim] = true
	}
	if len(used) != len(workers) || len(claims) != len(workers) {
		t.Errorf("%d workers have %d claims, and there are %d", len(workers), len(used), len(claims))
	}
	return claims
}

// claimsLeft waits until a cluster has as many claims.
func claimsLeft(t *testing.T, name types.NamespacedName, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d claims", n), func(ctx context.Context) error {
		claims, err := claimsOf(ctx, name)
		if err == nil && len(claims) != n {
			err = fmt.Errorf("there are %v", claims)
		}
		return err
	})
}

func TestAClaimStaysWithItsSlotAndGoesWithIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	name := claiming(t, namespace, 2, 3)
	first := claimed(t, name)

	workers := podsOf(t, name, v1beta1.RoleWorker)
	must(t, shared.Delete(t.Context(), &workers[0], client.GracePeriodSeconds(0)))
	replaced(t, name, workers[0])
	if now := claimed(t, name); !maps.Equal(now, first) {
		t.Errorf("after a worker was lost there are the claims %v, there were %v", now, first)
	}

	must(t, shared.Edit(t.Context(), name, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) }))
	eventually(t, "no pod to be left", func(ctx context.Context) error {
		pods, err := shared.PodsOf(ctx, name, "")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	must(t, shared.Edit(t.Context(), name, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(false) }))
	if ready(t, name); !maps.Equal(claimed(t, name), first) {
		t.Errorf("after a suspension there are other claims than %v", first)
	}

	scaleTo(t, name, 1)
	claimsLeft(t, name, 1)
	for claim, uid := range claimed(t, name) {
		if first[claim] != uid {
			t.Errorf("the claim of the worker that stayed, %s, is a new one", claim)
		}
	}
	scaleTo(t, name, 2)
	if ready(t, name); maps.Equal(claimed(t, name), first) {
		t.Error("the slot that came back has its former claim, which was to go with it")
	}
	workers = podsOf(t, name, v1beta1.RoleWorker)
	must(t, shared.Edit(t.Context(), name, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups = nil }))
	for i := range workers {
		eventually(t, workers[i].Name+" to be on its way out", func(ctx context.Context) error {
			err := shared.Get(ctx, client.ObjectKeyFromObject(&workers[i]), &workers[i])
			if err == nil && workers[i].Annotations[v1beta1.AnnotationDrain] == "" {
				err = errors.New("it is not")
			}
			return err
		})
	}
	claimsLeft(t, name, 2)   // as long as the workers are at work
	for i := range workers { // no head here would ever say that they have drained
		must(t, shared.Delete(t.Context(), &workers[i]))
	}
	claimsLeft(t, name, 0)
}

func TestSomeonesClaimUnderTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	name := claiming(t, namespace, 1, 2)
	taken := mounted(t, &podsOf(t, name, v1beta1.RoleWorker)[0])
	scaleTo(t, name, 0)
	claimsLeft(t, name, 0)
	ready(t, name)

	theirs := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: taken},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	must(t, shared.Create(t.Context(), theirs))
	scaleTo(t, name, 1)
	eventually(t, "the conflict to be named", func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, name)
		if err != nil {
			return err
		}
		for _, kind := range []string{v1beta1.ConditionNameConflict, v1beta1.ConditionStalled} {
			said := meta.FindStatusCondition(cluster.Status.Conditions, kind)
			if said == nil || said.Status != metav1.ConditionTrue || said.Reason != "NameConflict" || !strings.Contains(said.Message, taken) {
				return fmt.Errorf("%s is %+v", kind, said)
			}
		}
		return nil
	})
	if workers := podsOf(t, name, v1beta1.RoleWorker); len(workers) > 0 {
		t.Errorf("worker %s was made, which would mount someone's claim", workers[0].Name)
	}
	uid := theirs.UID
	must(t, shared.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	ours := slices.ContainsFunc(theirs.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "heliostat" })
	if theirs.UID != uid || theirs.DeletionTimestamp != nil || ours {
		t.Errorf("someone's claim was touched: %+v", theirs.ObjectMeta)
	}

	must(t, shared.Delete(t.Context(), theirs))
	cluster := ready(t, name)
	if said := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionNameConflict); said != nil {
		t.Errorf("the cluster still says %+v", said)
	}
	claimed(t, name)
}
