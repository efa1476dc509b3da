package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestStoreThatIsManaged follows the objects of a Redis that the operator makes, on a real
// API server and with the controllers of Kubernetes. No Redis runs in its pod, so no head
// ever comes.
func TestStoreThatIsManaged(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	m := managed{flags: []string{"--namespace=" + live.ReleaseNamespace, "--watch-namespaces=" + namespace, "--operator-labels=app=operator"}}
	m.operator = startOperator(t, m.flags...)
	m.NamespacedName = m.make(t, namespace, "kept")
	t.Run("is made whole", m.whole)
	t.Run("takes nothing more", m.quiet)
	t.Run("follows the image", m.image)
	t.Run("is mended", m.mended)
	t.Run("gets TLS when it is resumed", m.resumed)
	t.Run("goes, and a retained volume stays", m.goes)
}

// managed is a cluster with a Redis of the operator's.
type managed struct {
	types.NamespacedName
	operator *operator
	flags    []string
	uid      types.UID
}

// make makes a cluster and the volume that its store's claim will find.
func (m *managed) make(t *testing.T, namespace, name string) types.NamespacedName {
	t.Helper()
	class := namespace + "-" + name
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}
	must(t, shared.Create(t.Context(), volume))
	t.Cleanup(func() { must(t, shared.Delete(context.WithoutCancel(t.Context()), volume)) })
	cluster := newCluster(namespace, name, 1)
	cluster.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{StorageClassName: &class, Image: "redis:7.0"}}
	must(t, shared.Create(t.Context(), cluster))
	m.uid = cluster.UID
	return client.ObjectKeyFromObject(cluster)
}

// objects are those of the store, by name.
func (m *managed) objects() []client.Object {
	redis := at(types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-redis"})
	return []client.Object{
		&appsv1.StatefulSet{ObjectMeta: redis}, &corev1.Service{ObjectMeta: redis}, &corev1.Secret{ObjectMeta: redis},
		&networkingv1.NetworkPolicy{ObjectMeta: redis}, m.claim(),
	}
}

func (m *managed) claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: at(types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-store"})}
}

// set reads the StatefulSet.
func (m *managed) set(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-redis"}, set))
	return set
}

func (m *managed) whole(t *testing.T) {
	eventually(t, "the pod of the store to be ready", func(ctx context.Context) error {
		var set appsv1.StatefulSet
		err := shared.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-redis"}, &set)
		if err == nil && set.Status.ReadyReplicas != 1 {
			err = errors.New("it is not")
		}
		return err
	})
	for _, object := range m.objects() {
		eventually(t, fmt.Sprintf("a %T of the store", object), func(ctx context.Context) error {
			return shared.Get(ctx, client.ObjectKeyFromObject(object), object)
		})
		m.belongs(t, object)
	}
	// Nobody answers at a name that only pods can look up.
	s := storied{member: member{NamespacedName: m.NamespacedName}}
	s.tells(t, "False StoreUnreachable")
	if pods := podsOf(t, m.NamespacedName, ""); len(pods) > 0 {
		t.Errorf("pod %s was made, and nobody knows whether its store serves", pods[0].Name)
	}
}

// belongs checks that an object is the cluster's, and is of use.
func (m *managed) belongs(t *testing.T, object client.Object) {
	t.Helper()
	if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != m.uid || owner.Kind != "ComputeCluster" {
		t.Errorf("%T %s is owned by %+v, want the cluster %s", object, object.GetName(), owner, m.uid)
	}
	if object.GetLabels()[v1beta1.LabelStore] != m.Name {
		t.Errorf("%T %s has the labels %v", object, object.GetName(), object.GetLabels())
	}
	switch it := object.(type) {
	case *corev1.Secret:
		for _, key := range []string{v1beta1.StoreOperatorKey, v1beta1.StoreHeadKey} {
			if n := len(it.Data[key]); n < 32 {
				t.Errorf("the password %s has %d characters, want at least 32", key, n)
			}
		}
	case *corev1.PersistentVolumeClaim:
		if it.Status.Phase != corev1.ClaimBound {
			t.Errorf("the claim is %s", it.Status.Phase)
		}
	}
}

func (m *managed) quiet(t *testing.T) {
	passes, before := m.operator.quiet(), shared.audit.now(t)
	cluster, err := shared.Find(t.Context(), m.NamespacedName)
	must(t, err)
	seen := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, "example.com/note", "a reason to look again")
	must(t, shared.Patch(t.Context(), cluster, client.MergeFrom(seen)))
	m.operator.passed(passes + 1)
	m.operator.quiet()
	if made := writes(shared.audit.since(t, before, m.Namespace)); len(made) > 0 {
		t.Errorf("a pass over a store that was as it should be wrote: %s", tally(made))
	}
}

// edit changes what the spec says of the Redis.
func (m *managed) edit(t *testing.T, change func(*v1beta1.ManagedRedis)) {
	t.Helper()
	must(t, shared.Edit(t.Context(), m.NamespacedName, func(spec *v1beta1.ComputeClusterSpec) { change(spec.ControlStore.ManagedRedis) }))
}

func (m *managed) image(t *testing.T) {
	uid := m.set(t).UID
	m.edit(t, func(redis *v1beta1.ManagedRedis) { redis.Image = "redis:7.4" })
	eventually(t, "the pod of the store to have another image", func(ctx context.Context) error {
		var pod corev1.Pod
		err := shared.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-redis-0"}, &pod)
		if err == nil && pod.Spec.Containers[0].Image != "redis:7.4" {
			err = fmt.Errorf("it has %s", pod.Spec.Containers[0].Image)
		}
		return err
	})
	if now := m.set(t).UID; now != uid {
		t.Errorf("the StatefulSet is %s, it was %s", now, uid)
	}
}

// mended: what someone takes away from the store is made again.
func (m *managed) mended(t *testing.T) {
	meddle(t, m.set(t), func(set *appsv1.StatefulSet) { set.Spec.Replicas = new(int32) }, func(set *appsv1.StatefulSet) bool { return *set.Spec.Replicas == 1 })
	for _, object := range m.objects() {
		if _, is := object.(*corev1.PersistentVolumeClaim); is {
			continue // its protection keeps it as long as a pod uses it
		}
		if _, is := object.(*corev1.Secret); is {
			continue // a Redis that runs has read it: StoreSecretMissing says what to do
		}
		must(t, shared.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		uid := object.GetUID()
		must(t, shared.Delete(t.Context(), object))
		eventually(t, fmt.Sprintf("another %T", object), func(ctx context.Context) error {
			err := shared.Get(ctx, client.ObjectKeyFromObject(object), object)
			if err == nil && object.GetUID() == uid {
				err = errors.New("it is the same")
			}
			return err
		})
	}
}

// goes deletes two clusters: one that came to retain its volume, and one that does not.
func (m *managed) goes(t *testing.T) {
	other := managed{operator: m.operator}
	other.NamespacedName = other.make(t, m.Namespace, "whole")
	s := storied{member: member{NamespacedName: other.NamespacedName}}
	s.tells(t, "False StoreUnreachable")

	m.edit(t, func(redis *v1beta1.ManagedRedis) { redis.Retain = new(true) })
	claim := m.claim()
	eventually(t, "the claim to have no owner", func(ctx context.Context) error {
		err := shared.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		if err == nil && len(claim.OwnerReferences) > 0 {
			err = fmt.Errorf("it has %+v", claim.OwnerReferences)
		}
		return err
	})
	begin := time.Now()
	for _, one := range []*managed{m, &other} {
		must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: at(one.NamespacedName)}))
	}
	for _, one := range []*managed{m, &other} {
		must(t, shared.UntilGone(t.Context(), one.NamespacedName, limit))
		for _, object := range one.objects() {
			if _, is := object.(*corev1.PersistentVolumeClaim); !is || one == &other {
				gone(t, object)
			}
		}
		gone(t, &corev1.Pod{ObjectMeta: at(types.NamespacedName{Namespace: one.Namespace, Name: one.Name + "-redis-0"})})
	}
	t.Logf("deleted, and nothing left after %v", rounded(time.Since(begin)))
	uid := claim.UID
	err := shared.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
	if apierrors.IsNotFound(err) || claim.UID != uid || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the retained claim is %s, %+v", claim.Status.Phase, err)
	}
	must(t, shared.Delete(t.Context(), claim))
}

// resumed: an operator that has programs for pods comes after one that had none. A set that runs stays as it is, and gets TLS
// where its cluster is suspended and resumed.
func (m *managed) resumed(t *testing.T) {
	m.operator.stop(syscall.SIGTERM)
	before := m.set(t)
	m.operator = startOperator(m.operator.t, append(m.flags, "--autoscaler-image=none")...)
	m.operator.quiet()
	if now := m.set(t); now.Generation != before.Generation || encrypts(now) {
		t.Errorf("a set that ran without TLS is now %+v", now.Spec.Template.Spec)
	}
	suspend := func(yes bool) {
		t.Helper()
		must(t, shared.Edit(t.Context(), m.NamespacedName, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(yes) }))
		eventually(t, fmt.Sprintf("the set to follow suspend %t", yes), func(context.Context) error {
			if set := m.set(t); (*set.Spec.Replicas == 0) != yes {
				return fmt.Errorf("it has %d replicas", *set.Spec.Replicas)
			}
			return nil
		})
	}
	suspend(true)
	suspend(false)
	if !encrypts(m.set(t)) {
		t.Error("the set has no TLS")
	}
	authority := types.NamespacedName{Namespace: m.Namespace, Name: m.Name + "-ca"}
	eventually(t, "the authority", func(ctx context.Context) error { return shared.Get(ctx, authority, &corev1.Secret{}) })
	m.operator.quiet()
	s := storied{member: member{NamespacedName: m.NamespacedName}}
	s.tells(t, "False StoreUnreachable")
}

// encrypts reports whether the Redis of a set listens with TLS.
func encrypts(set *appsv1.StatefulSet) bool {
	return slices.Contains(set.Spec.Template.Spec.Containers[0].Args, "--tls-port") && len(set.Spec.Template.Spec.InitContainers) == 1
}
