package cluster

import (
	"context"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// leaving is an API server, and a cache of it, with the pods of a cluster that is gone. It counts calls.
type leaving struct {
	client.WithWatch
	reads   int
	mutex   sync.Mutex
	deleted map[string]int
	// together counts calls that delete all pods with a label.
	together int
	// scans counts lists of pods without an index, which read all pods of a namespace.
	scans int
}

func newLeaving(t *testing.T, pods ...client.Object) *leaving {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pods...)
	for _, field := range index.Fields() {
		if _, is := field.Kind.(*corev1.Pod); is {
			build.WithIndex(field.Kind, field.Name, field.Value)
		}
	}
	l := &leaving{deleted: map[string]int{}}
	l.WithWatch = interceptor.NewClient(build.Build(), interceptor.Funcs{
		List: func(ctx context.Context, below client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := below.List(ctx, list, opts...)
			if found, is := list.(*corev1.PodList); is {
				l.age(found)
				var options client.ListOptions
				if options.ApplyOptions(opts); options.FieldSelector == nil {
					l.scans++
				}
			}
			return err
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			l.mutex.Lock() // they are deleted all at once
			defer l.mutex.Unlock()
			l.deleted[obj.GetName()]++
			return nil
		},
		DeleteAllOf: func(ctx context.Context, below client.WithWatch, _ client.Object, opts ...client.DeleteAllOfOption) error {
			var options client.DeleteAllOfOptions
			options.ApplyOptions(opts)
			var pods corev1.PodList
			err := below.List(ctx, &pods, &options.ListOptions)
			l.together++
			for i := range pods.Items {
				l.deleted[pods.Items[i].Name]++
			}
			return err
		},
	})
	return l
}

// age gives pods that were deleted the grace that they were deleted with.
func (l *leaving) age(pods *corev1.PodList) {
	for i := range pods.Items {
		if l.deleted[pods.Items[i].Name] > 0 {
			pods.Items[i].DeletionGracePeriodSeconds = new(orphanGrace)
		}
	}
}

// Get is a read past the cache.
func (l *leaving) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	l.reads++
	return l.WithWatch.Get(ctx, key, obj, opts...)
}

func podOfGone(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{v1beta1.LabelCluster: "demo"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Name: "demo", UID: "gone", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

// TestHasten_CostsOneCallForPodsWithTheLabel and leaves pods of others alone.
func TestHasten_CostsOneCallForPodsWithTheLabel(t *testing.T) {
	labelled := func(name, uid string) *corev1.Pod {
		pod := podOfGone(name, "n1")
		pod.Labels[v1beta1.LabelClusterUID], pod.OwnerReferences[0].UID = uid, types.UID(uid)
		return pod
	}
	server := newLeaving(t, labelled("head", "gone"), labelled("worker", "gone"), podOfGone("former", "n1"), labelled("other", "lives"))
	r := &Reconciler{Client: server, Live: server, Writer: &kube.Writer{Client: server, Live: server}}
	name := types.NamespacedName{Namespace: "default", Name: "demo"}
	r.Deleted.Add(name, "gone")
	for range 5 {
		if err := r.hastener().hastenOrphans(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]int{"head": 1, "worker": 1, "former": 1}; server.together != 1 || !maps.Equal(server.deleted, want) {
		t.Errorf("%d calls for pods with the label, deleted %v", server.together, server.deleted)
	}
	if server.scans > 0 {
		t.Errorf("all pods of the namespace are read %d times", server.scans)
	}
}

// TestHasten_CostsOneCallForAPodThatRuns whatever wakes the cluster's name meanwhile.
func TestHasten_CostsOneCallForAPodThatRuns(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "demo"}
	for _, c := range []struct {
		name  string
		seen  types.UID
		reads int
	}{
		{"and no read where the cluster was seen to go", "gone", 0},
		{"and one read where it was not", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newLeaving(t, podOfGone("head", "n1"), podOfGone("worker", "n1"), podOfGone("waits", ""))
			r := &Reconciler{Client: server, Live: server, Writer: &kube.Writer{Client: server, Live: server}}
			if c.seen != "" {
				r.Deleted.Add(name, c.seen)
			}
			for range 5 {
				if err := r.hastener().hastenOrphans(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			if server.reads != c.reads || server.deleted["head"] != 1 || server.deleted["worker"] != 1 || len(server.deleted) != 2 {
				t.Errorf("%d reads, deleted %v", server.reads, server.deleted)
			}
		})
	}
}

// TestHasten_KeepsNothingOnceThePodsAreGone, also of a cluster that never had any.
func TestHasten_KeepsNothingOnceThePodsAreGone(t *testing.T) {
	r := &Reconciler{Client: newLeaving(t)}
	name := types.NamespacedName{Namespace: "default", Name: "demo"}
	r.Deleted.Add(name, "gone")
	if err := r.hastener().hastenOrphans(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if len(r.Deleted.uids) > 0 {
		t.Errorf("%v are kept", r.Deleted.uids)
	}
}
