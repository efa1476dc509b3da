package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// deed is a change that the API server made known.
type deed struct {
	object view.Object
	isGone bool
}

// store is an API server: objects, and the changes of each kind in their order.
type store struct {
	rv      int
	objects map[view.Key]view.Object
	deeds   map[string][]deed
}

func newStore() *store {
	return &store{rv: 100, objects: map[view.Key]view.Object{}, deeds: map[string][]deed{}}
}

// put makes or changes an object.
func (s *store) put(object view.Object) {
	s.rv++
	object.SetResourceVersion(strconv.Itoa(s.rv))
	kind := view.KindOf(object)
	s.objects[view.Key{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}] = object
	s.deeds[kind] = append(s.deeds[kind], deed{object: object})
}

// remove deletes an object, if it is there.
func (s *store) remove(key view.Key) {
	object, is := s.objects[key]
	if !is {
		return
	}
	s.rv++
	last := object.DeepCopyObject().(view.Object)
	last.SetResourceVersion(strconv.Itoa(s.rv))
	delete(s.objects, key)
	s.deeds[key.Kind] = append(s.deeds[key.Kind], deed{object: last, isGone: true})
}

// replica is a server that sees the changes of a store in its own time.
type replica struct {
	store *store
	view  *view.View
	feed  *Feed
	next  map[string]int
}

// newReplica returns a server that has read everything once.
func newReplica(t testing.TB, of *store, now clock.WithTicker) *replica {
	t.Helper()
	r := &replica{store: of, view: view.New(), next: map[string]int{}}
	r.feed = New(r.view, now)
	for _, kind := range sources {
		r.list(t, kind)
	}
	r.feed.publish()
	return r
}

var sources = append(view.Kinds(), view.Pods)

// list reads a kind as it is now, as after a watch that was lost for long.
func (r *replica) list(t testing.TB, kind string) {
	t.Helper()
	var objects []any
	for key, object := range r.store.objects {
		if key.Kind == kind {
			objects = append(objects, object.DeepCopyObject())
		}
	}
	r.next[kind] = len(r.store.deeds[kind])
	if err := r.view.Store(kind, "").Replace(objects, strconv.Itoa(r.store.rv)); err != nil {
		t.Fatal(err)
	}
}

// deliver reads up to so many changes of a kind.
func (r *replica) deliver(t testing.TB, kind string, count int) {
	t.Helper()
	into := r.view.Store(kind, "")
	for ; count > 0 && r.next[kind] < len(r.store.deeds[kind]); count-- {
		one := r.store.deeds[kind][r.next[kind]]
		r.next[kind]++
		act := into.Update
		if one.isGone {
			act = into.Delete
		}
		if err := act(one.object.DeepCopyObject()); err != nil {
			t.Fatal(err)
		}
	}
	if r.next[kind] == len(r.store.deeds[kind]) {
		if err := into.Bookmark(strconv.Itoa(r.store.rv)); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *replica) deliverAll(t testing.TB) {
	t.Helper()
	for _, kind := range sources {
		r.deliver(t, kind, 1<<30)
	}
	r.feed.publish()
}

func meta(namespace, name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
}

func newCluster(namespace, name, phase string) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{ObjectMeta: meta(namespace, name, "c-"+name), Status: v1beta1.ComputeClusterStatus{Phase: phase}}
}

func newPod(of *v1beta1.ComputeCluster, name string, gpus int64) *corev1.Pod {
	one := &corev1.Pod{ObjectMeta: meta(of.Namespace, name, "p-"+name)}
	one.OwnerReferences = []metav1.OwnerReference{{Kind: "ComputeCluster", Name: of.Name, UID: of.UID, Controller: new(true)}}
	one.Spec.Containers = []corev1.Container{{Name: "ray", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
	}}}
	return one
}

// change makes a random change: of jobs, of clusters that belong to them, of services, and of pods of the clusters.
func (s *store) change(random *rand.Rand) {
	namespace := []string{"a", "b", "c"}[random.IntN(3)]
	phase := []string{"Ready", "Starting", "Failed"}[random.IntN(3)]
	number := random.IntN(3)
	own := newCluster(namespace, fmt.Sprint("x", number), phase)
	own.UID = types.UID(fmt.Sprint(namespace, "-c", number, "-", random.IntN(2)))
	owner := &v1beta1.ClusterJob{ObjectMeta: meta(namespace, fmt.Sprint("x", number), fmt.Sprint(namespace, "-j", number)), Status: v1beta1.ClusterJobStatus{Phase: phase}}
	var object view.Object
	switch random.IntN(5) {
	case 0:
		object = owner
	case 1:
		object = &v1beta1.ClusterService{ObjectMeta: meta(namespace, "s", namespace+"-s"), Status: v1beta1.ClusterServiceStatus{Phase: phase}}
	case 2:
		object = newPod(own, fmt.Sprint("p", random.IntN(4)), int64(random.IntN(3)))
	default:
		if yes := true; random.IntN(3) > 0 {
			own.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterJob", Name: owner.Name, UID: owner.UID, Controller: &yes}}
		}
		object = own
	}
	if random.IntN(4) == 0 {
		s.remove(view.Key{Kind: view.KindOf(object), Namespace: namespace, Name: object.GetName()})
		return
	}
	s.put(object)
}

// may returns what a caller may do: see kinds everywhere, and in namespaces.
type may map[view.Place]bool

func (m may) ask(_ context.Context, kind, namespace string) error {
	if m[view.Place{Kind: kind, Namespace: namespace}] || m[view.Place{Kind: kind}] {
		return nil
	}
	return access.ErrForbidden
}

// everything is the right to all kinds everywhere.
func everything() may {
	all := may{}
	for _, kind := range view.Kinds() {
		all[view.Place{Kind: kind}] = true
	}
	return all
}
