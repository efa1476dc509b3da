package sweep

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestClusterMustBeGone: only what the API server itself says counts, and silence is no word.
func TestClusterMustBeGone(t *testing.T) {
	note := open(1, redis)
	clusters := v1beta1.GroupVersion.WithResource("computeclusters").GroupResource()
	cause := errors.New("the server is away")
	unserved := apierrors.NewGenericServerResponse(404, "get", clusters, "c1", "404 page not found", 0, true)
	for _, c := range []struct {
		what   string
		there  []client.Object
		call   string
		err    error
		cached func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error
		swept  bool
	}{
		{what: "it is", swept: true},
		{what: "another has its name", there: []client.Object{func() client.Object { o := clusterOf(note); o.UID = "another"; return o }()}, swept: true},
		{what: "the cache has lost it", there: []client.Object{clusterOf(note)}, cached: func(_ context.Context, _ client.WithWatch, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(clusters, name.Name)
		}},
		{what: "the cache does not know", cached: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return cause
		}},
		{what: "the API server is away", call: "get *v1beta1.ComputeCluster", err: cause},
		{what: "the kind is not served", call: "get *v1beta1.ComputeCluster", err: unserved},
		{what: "its pods cannot be listed", call: "list *v1.PodList", err: cause},
	} {
		t.Run(c.what, func(t *testing.T) {
			run(t, append(c.there, note.ConfigMap("heliostat")), func(b *bed) {
				if c.cached != nil {
					b.cache = interceptor.NewClient(b.api, interceptor.Funcs{Get: c.cached})
				}
				b.refuse(c.call, c.err)
				b.begin()
				b.pass(2 * time.Minute)
				if swept := len(b.sweeps()) > 0; swept != c.swept || (b.only() == nil) != c.swept {
					t.Errorf("swept: %v, left %v", swept, b.only())
				}
				if n := b.calls(""); !c.swept && n > 30 {
					t.Errorf("%d calls in two minutes", n)
				}
				if c.err != nil { // when it is back, so are we
					b.refuse(c.call, nil)
					b.pass(longest + time.Second)
					if len(b.sweeps()) != 1 {
						t.Errorf("swept %d times", len(b.sweeps()))
					}
				}
			})
		})
	}
}

// TestPodsMustBeGone: one that may run would write again.
func TestPodsMustBeGone(t *testing.T) {
	note := open(1, redis)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	off := node.DeepCopy()
	off.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	ended := podOf(note, note.UID, "n1")
	ended.Status.Phase = corev1.PodFailed
	elsewhere := podOf(note, note.UID, "n1")
	elsewhere.Namespace = "other"
	for _, c := range []struct {
		what  string
		there []client.Object
		blind bool
		waits bool
	}{
		{"its own", []client.Object{podOf(note, note.UID, "n1"), node}, false, true},
		{"its own, on a node that is not there", []client.Object{podOf(note, note.UID, "n2")}, false, true},
		{"its own, on no node yet", []client.Object{podOf(note, note.UID, "")}, false, true},
		{"orphaned", []client.Object{podOf(note, "", "n1"), node}, false, true},
		{"on a node that is off", []client.Object{podOf(note, note.UID, "n1"), off}, false, false},
		{"on a node that is off, which may not be seen", []client.Object{podOf(note, note.UID, "n1"), off}, true, true},
		{"one that has ended", []client.Object{ended, node}, false, false},
		{"another cluster's of its name", []client.Object{podOf(note, "another", "n1"), node}, false, false},
		{"in another namespace", []client.Object{elsewhere}, false, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			run(t, append(c.there, note.ConfigMap("heliostat")), func(b *bed) {
				b.begin(func(s *Sweeper) {
					if c.blind {
						s.Nodes = nil
					}
				})
				b.pass(5 * time.Minute)
				if waits := len(b.sweeps()) == 0; waits != c.waits {
					t.Fatalf("waits: %v", waits)
				}
				if !c.waits {
					return
				}
				kept := b.only()
				if kept[keyState] != StateWaiting || !strings.Contains(kept[keyWhy], "pod c1-head-x is not gone") || kept[keySince] == "" {
					t.Errorf("the note says %v", kept)
				}
				if n := b.calls("patch *v1.ConfigMap"); n != 1 {
					t.Errorf("%d writes", n)
				}
				b.delete(podOf(note, "", ""))
				b.pass(3 * time.Second)
				if len(b.sweeps()) != 1 || b.only() != nil {
					t.Errorf("swept %d times after it went, left %v", len(b.sweeps()), b.only())
				}
			})
		})
	}
}

// TestPodThatTheCacheLacks is seen by the API server itself.
func TestPodThatTheCacheLacks(t *testing.T) {
	note := open(1, redis)
	run(t, []client.Object{note.ConfigMap("heliostat"), podOf(note, note.UID, "n1")}, func(b *bed) {
		b.cache = interceptor.NewClient(b.api, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, pods := list.(*corev1.PodList); pods {
					return nil
				}
				return c.List(ctx, list, opts...)
			},
		})
		b.begin()
		b.pass(time.Minute)
		if len(b.sweeps()) > 0 {
			t.Error("swept beside a pod")
		}
	})
}

// TestSweeper_WaitsForPodsThatAreBeingStopped: until its grace is over, a head writes on.
func TestSweeper_WaitsForPodsThatAreBeingStopped(t *testing.T) {
	note := open(1, redis)
	stopping := podOf(note, note.UID, "n1")
	stopping.Finalizers = []string{"example.com/grace"}
	run(t, []client.Object{note.ConfigMap("heliostat"), stopping}, func(b *bed) {
		b.delete(stopping)
		b.begin()
		b.pass(time.Minute)
		if len(b.sweeps()) > 0 {
			t.Error("swept beside a pod that is being stopped")
		}
		ended := stopping.DeepCopy()
		ended.Finalizers = nil
		if err := b.api.Patch(t.Context(), ended, client.MergeFrom(stopping)); err != nil {
			t.Fatal(err)
		}
		b.pass(longest + time.Second)
		b.nothingLeft(1)
	})
}
