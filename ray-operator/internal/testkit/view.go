package testkit

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
)

// Event is one revision: an object as it is, or as it was when it went. Nobody changes
// the object any more.
type Event struct {
	Type   watch.EventType
	Object client.Object
	// Own tells that the operator itself wrote it.
	Own bool
	// Was is the object as a cache held it before, nil if it did not.
	Was client.Object
}

type key struct {
	kind string
	types.NamespacedName
}

func keyOf(obj client.Object) key { return key{kindOf(obj), client.ObjectKeyFromObject(obj)} }

// kindOf is the kind of an object or a list: in Kubernetes' API that is the name of its type. Metadata alone says whose it is.
func kindOf(obj any) string {
	if metadata, is := obj.(*metav1.PartialObjectMetadata); is {
		return metadata.Kind
	}
	return reflect.TypeOf(obj).Elem().Name()
}

// The kinds that have a controller.
const clusterKind, jobKind, serviceKind = "ComputeCluster", "ClusterJob", "ClusterService"

// hasController reports whether a kind has one.
func hasController(kind string) bool {
	return kind == clusterKind || kind == jobKind || kind == serviceKind
}

// view is a cache: the objects as the last event that reached it says. It serves reads
// as an informer cache with the operator's indexes does.
type view struct {
	mu      sync.Mutex
	objects map[key]client.Object
	// queue holds events that have not reached the cache.
	queue []Event
	// holds reports whether the cache takes an object in; nil is all.
	holds func(client.Object) bool
}

func newView(holds func(client.Object) bool) *view {
	return &view{objects: map[key]client.Object{}, holds: holds}
}

// labelled is what the operator's cache holds: of the kinds that others use too, what
// carries a cluster's label, and notes. Of policies it holds those of others too.
func labelled(obj client.Object) bool {
	switch obj.(type) {
	case *v1beta1.ComputeCluster, *v1beta1.ClusterJob, *v1beta1.ClusterService, *corev1.Node, *networkingv1.NetworkPolicy:
		return true
	case *corev1.Secret, *corev1.Event:
		return false
	default:
		_, ours := obj.GetLabels()[v1beta1.LabelCluster]
		return ours || obj.GetLabels()[v1beta1.LabelNote] != ""
	}
}

func (v *view) push(event Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, event)
}

// late tells how far a cache is behind: by so many events, of one kind or, for "", of all;
// with Waits not of what the operator wrote itself, and of what came before that.
type late struct {
	kind  string
	by    int
	waits bool
}

// deliver lets the oldest events in until at most those are left that are late, and
// gives those that came in.
func (v *view) deliver(behind late) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	concerned := func(event Event) bool { return behind.kind == "" || kindOf(event.Object) == behind.kind }
	waiting, waitedFor := 0, map[string]int{}
	for i, event := range v.queue {
		if concerned(event) {
			waiting++
		}
		if event.Own && behind.waits {
			waitedFor[kindOf(event.Object)] = i + 1
		}
	}
	var delivered, left []Event
	for i, event := range v.queue {
		if concerned(event) {
			if waiting <= behind.by && i >= waitedFor[kindOf(event.Object)] {
				left = append(left, event)
				continue
			}
			waiting--
		}
		delivered = append(delivered, v.take(event))
	}
	v.queue = left
	return delivered
}

// deliverBut lets all events in but those of a class, which stay until another event of
// the same object comes: that one is all the cache ever sees of the two. What the operator
// wrote itself is not held back, because its client waits for it.
func (v *view) deliverBut(unseen class) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := map[key]int{}
	for i, event := range v.queue {
		last[keyOf(event.Object)] = i
	}
	var delivered, left []Event
	for i, event := range v.queue {
		switch {
		case !unseen.has(event) || event.Own:
			delivered = append(delivered, v.take(event))
		case last[keyOf(event.Object)] == i:
			left = append(left, event)
		}
	}
	v.queue = left
	return delivered
}

// take lets one event in, and gives it with what was held before.
func (v *view) take(event Event) Event {
	at := keyOf(event.Object)
	event.Was = v.objects[at]
	if event.Type == watch.Deleted || v.holds != nil && !v.holds(event.Object) {
		delete(v.objects, at)
	} else {
		v.objects[at] = event.Object
	}
	return event
}

// Get reads one object.
func (v *view) Get(_ context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	found := v.find(key{kindOf(obj), name})
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(obj)}, name.Name)
	}
	var options client.GetOptions
	options.ApplyOptions(opts)
	if unsafe := options.UnsafeDisableDeepCopy; unsafe != nil && *unsafe {
		share(obj, found)
		return nil
	}
	set(obj, found)
	if v.holds != nil { // unlike a client, a cache tells the kind
		gvk, err := apiutil.GVKForObject(obj, scheme())
		if err != nil {
			return fmt.Errorf("testkit: find the kind of %T: %w", obj, err)
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

// find gives the object as it is held, not to be changed, or nil.
func (v *view) find(at key) client.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.objects[at]
}

// held gives every object as it is held, not to be changed.
func (v *view) held() []client.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.objects))
}

// List reads the objects of a namespace by labels and by what is indexed.
func (v *view) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var options client.ListOptions
	options.ApplyOptions(opts)
	kind := strings.TrimSuffix(kindOf(list), "List")
	var found []runtime.Object
	for at, obj := range v.objects {
		if at.kind != kind || options.Namespace != "" && options.Namespace != at.Namespace {
			continue
		}
		fits, err := matches(obj, &options)
		if err != nil {
			return err
		}
		switch unsafe := options.UnsafeDisableDeepCopy; {
		case fits && unsafe != nil && *unsafe:
			found = append(found, obj)
		case fits:
			found = append(found, obj.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, found); err != nil {
		return fmt.Errorf("testkit: list %s: %w", kind, err)
	}
	return nil
}

func matches(obj client.Object, options *client.ListOptions) (bool, error) {
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
		return false, nil
	}
	if options.FieldSelector == nil {
		return true, nil
	}
	for _, wanted := range options.FieldSelector.Requirements() {
		value, ok := indexed(obj)[wanted.Field]
		if !ok {
			return false, apierrors.NewBadRequest("testkit: no index on the field " + wanted.Field)
		}
		if value != wanted.Value {
			return false, nil
		}
	}
	return true, nil
}

// indexed are the fields by which an object can be asked for.
func indexed(obj client.Object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}
	for _, field := range index.Fields() {
		if kindOf(field.Kind) == kindOf(obj) {
			set[field.Name] = strings.Join(field.Value(obj), ",")
		}
	}
	if event, ok := obj.(*corev1.Event); ok {
		set["involvedObject.uid"] = string(event.InvolvedObject.UID)
		set["involvedObject.name"] = event.InvolvedObject.Name
		set["involvedObject.kind"] = event.InvolvedObject.Kind
		set["involvedObject.namespace"] = event.InvolvedObject.Namespace
	}
	return set
}

// set copies what from holds into to; both are pointers to the same type.
func set(to, from client.Object) {
	if metadata, is := to.(*metav1.PartialObjectMetadata); is {
		metadata.ObjectMeta = meta.AsPartialObjectMetadata(copied(from)).ObjectMeta
		return
	}
	share(to, copied(from))
}

// share lets to hold what from holds, as a cache does that is asked for no copy.
func share(to, from client.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

func copied(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object)
}
