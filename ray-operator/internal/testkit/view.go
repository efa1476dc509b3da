package testkit

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// Event is one revision: an object as it is, or as it was when it went.
type Event struct {
	Type   watch.EventType
	Object client.Object
}

type key struct {
	kind string
	types.NamespacedName
}

// view is a cache: the objects as the last event that reached it says. It serves reads
// as an informer cache with cluster.OwnerIndex does.
type view struct {
	scheme  *runtime.Scheme
	mu      sync.Mutex
	objects map[key]client.Object
	// queue holds events that have not reached the cache.
	queue []Event
}

func newView(scheme *runtime.Scheme) *view {
	return &view{scheme: scheme, objects: map[key]client.Object{}}
}

func (v *view) push(event Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, event)
}

// deliver lets the oldest events in until at most lag of them are left, and gives those
// that came in.
func (v *view) deliver(lag int) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	count := max(0, len(v.queue)-lag)
	delivered := v.queue[:count]
	v.queue = v.queue[count:]
	for _, event := range delivered {
		if event.Type == watch.Deleted {
			delete(v.objects, v.keyOf(event.Object))
		} else {
			v.objects[v.keyOf(event.Object)] = event.Object
		}
	}
	return delivered
}

func (v *view) keyOf(obj client.Object) key {
	return key{kindOf(v.scheme, obj), client.ObjectKeyFromObject(obj)}
}

func kindOf(scheme *runtime.Scheme, obj runtime.Object) string {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		panic(fmt.Errorf("testkit: find the kind of %T: %w", obj, err))
	}
	return gvk.Kind
}

// Get reads one object.
func (v *view) Get(_ context.Context, name client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := kindOf(v.scheme, obj)
	found, ok := v.objects[key{kind, name}]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name.Name)
	}
	set(obj, found)
	return nil
}

// List reads the objects of a namespace by labels and by cluster.OwnerIndex.
func (v *view) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var options client.ListOptions
	options.ApplyOptions(opts)
	kind := kindOf(v.scheme, list)
	var found []runtime.Object
	for key, obj := range v.objects {
		if key.kind+"List" == kind && (options.Namespace == "" || options.Namespace == key.Namespace) && matches(obj, &options) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, found); err != nil {
		return fmt.Errorf("testkit: list %s: %w", kind, err)
	}
	return nil
}

func matches(obj client.Object, options *client.ListOptions) bool {
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if options.FieldSelector == nil {
		return true
	}
	uid, ok := options.FieldSelector.RequiresExactMatch(cluster.OwnerIndex)
	owner := metav1.GetControllerOf(obj)
	return ok && owner != nil && string(owner.UID) == uid
}

// set copies what from holds into to; both are pointers to the same type.
func set(to, from client.Object) {
	copied := from.DeepCopyObject()
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(copied).Elem())
}
