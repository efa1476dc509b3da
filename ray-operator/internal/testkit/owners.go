package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// owners knows who set which field of what is applied, with the API server's own code
// for server-side apply.
type owners struct {
	managers map[string]*managedfields.FieldManager
	entries  map[types.UID][]metav1.ManagedFieldsEntry
}

var converter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme())
})

// typesOf knows the fields of a kind; client-go does not know those of Gateway API.
func typesOf(obj client.Object) managedfields.TypeConverter {
	if _, is := obj.(*gatewayv1.HTTPRoute); is {
		return managedfields.NewDeducedTypeConverter()
	}
	return converter()
}

func newOwners() owners {
	return owners{map[string]*managedfields.FieldManager{}, map[types.UID][]metav1.ManagedFieldsEntry{}}
}

// defaulter leaves objects as they are.
type defaulter struct{}

// Default does nothing.
func (defaulter) Default(runtime.Object) {}

func (o *owners) managerOf(obj client.Object) (*managedfields.FieldManager, error) {
	kind := kindOf(obj)
	if o.managers[kind] == nil {
		gvk, err := apiutil.GVKForObject(obj, scheme())
		if err != nil {
			return nil, fmt.Errorf("testkit: find the kind of %T: %w", obj, err)
		}
		made, err := managedfields.NewDefaultFieldManager(typesOf(obj), scheme(), defaulter{}, scheme(), gvk, gvk.GroupVersion(), "", nil)
		if err != nil {
			return nil, fmt.Errorf("testkit: manage the fields of %s: %w", kind, err)
		}
		o.managers[kind] = made
	}
	return o.managers[kind], nil
}

// tracked reports whether who set a field matters: nobody applies the others.
func tracked(obj client.Object) bool {
	switch obj.(type) {
	case *v1beta1.ComputeCluster, *v1beta1.ClusterJob, *v1beta1.ClusterService, *corev1.Pod, *corev1.Node, *corev1.Secret, *corev1.Event:
		return false
	default:
		return true
	}
}

// update takes note of a write that was not an apply. For a new object both are the same.
func (o *owners) update(there, after client.Object, manager string) error {
	if !tracked(after) {
		return nil
	}
	if manager == "" {
		manager = "someone"
	}
	fields, err := o.managerOf(after)
	if err != nil {
		return err
	}
	before, now, err := o.prepared(there, after)
	if err != nil {
		return err
	}
	noted, err := fields.Update(before, now, manager)
	if err != nil {
		return fmt.Errorf("testkit: note the fields of %s: %w", after.GetName(), err)
	}
	o.entries[after.GetUID()] = noted.(client.Object).GetManagedFields()
	after.SetManagedFields(nil)
	return nil
}

// prepared are copies of the two with kind and field owners, before being empty if
// there was nothing.
func (o *owners) prepared(there, after client.Object) (before, now client.Object, err error) {
	gvk, err := apiutil.GVKForObject(after, scheme())
	if err != nil {
		return nil, nil, fmt.Errorf("testkit: find the kind of %T: %w", after, err)
	}
	now, before = copied(after), copied(there)
	if _, known := o.entries[after.GetUID()]; !known {
		empty, err := scheme().New(gvk)
		if err != nil {
			return nil, nil, fmt.Errorf("testkit: make a %s: %w", gvk.Kind, err)
		}
		before = empty.(client.Object)
	}
	for _, obj := range []client.Object{before, now} {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		obj.SetManagedFields(o.entries[after.GetUID()])
	}
	return before, now, nil
}

// of are copies of the entries of an object.
func (o *owners) of(obj client.Object) []metav1.ManagedFieldsEntry {
	entries := o.entries[obj.GetUID()]
	if len(entries) == 0 {
		return nil
	}
	copies := make([]metav1.ManagedFieldsEntry, len(entries))
	for i := range entries {
		entries[i].DeepCopyInto(&copies[i])
	}
	return copies
}

// upgrade is a JSON patch of an object's field owners.
func (s *server) upgrade(ctx context.Context, obj client.Object, patch client.Patch) error {
	return s.write(ctx, obj, func(there client.Object) (client.Object, error) {
		after := copied(there)
		after.SetManagedFields(s.owners.of(there))
		if err := patched(after, obj, patch); err != nil {
			return nil, fmt.Errorf("testkit: patch %s: %w", obj.GetName(), err)
		}
		if err := sameOne(there, after); err != nil {
			return nil, err
		}
		s.owners.entries[there.GetUID()] = after.GetManagedFields()
		owned := copied(there)
		owned.SetManagedFields(after.GetManagedFields())
		return owned, nil
	})
}

// patched changes an object by a JSON patch.
func patched(after, obj client.Object, patch client.Patch) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	changes, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return err
	}
	text, err := json.Marshal(after)
	if err != nil {
		return err
	}
	if text, err = changes.Apply(text); err != nil {
		return err
	}
	reflect.ValueOf(after).Elem().SetZero() // what the patch has removed stays away
	return json.Unmarshal(text, after)
}

func (o *owners) forget(uid types.UID) { delete(o.entries, uid) }

// apply merges an apply configuration into an object.
func (o *owners) apply(there client.Object, config *unstructured.Unstructured, options client.ApplyOptions) (client.Object, error) {
	fields, err := o.managerOf(there)
	if err != nil {
		return nil, err
	}
	before, _, err := o.prepared(there, there)
	if err != nil {
		return nil, err
	}
	force := options.Force != nil && *options.Force
	result, err := fields.Apply(before, config, options.FieldManager, force)
	if err != nil {
		return nil, fmt.Errorf("testkit: apply %s: %w", there.GetName(), err)
	}
	after := result.(client.Object)
	o.entries[there.GetUID()] = after.GetManagedFields()
	after.SetManagedFields(nil)
	return after, nil
}

// Apply merges an apply configuration into an object that is there.
func (s *server) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(opts)
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("testkit: apply %T: %w", config, err)
	}
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &wanted.Object); err != nil {
		return fmt.Errorf("testkit: apply %T: %w", config, err)
	}
	empty, err := scheme().New(wanted.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("testkit: apply %T: %w", config, err)
	}
	obj := empty.(client.Object)
	obj.SetNamespace(wanted.GetNamespace())
	obj.SetName(wanted.GetName())
	err = s.write(ctx, obj, func(there client.Object) (client.Object, error) {
		if wanted.GetUID() != "" && wanted.GetUID() != there.GetUID() {
			return nil, conflict(there, "the UID does not match")
		}
		after, err := s.owners.apply(there, wanted, options)
		if err != nil {
			return nil, err
		}
		setField(after, there, "Status")
		// Of nothing else that is applied anybody asks for the generation.
		if _, is := there.(*gatewayv1.HTTPRoute); is && !reflect.DeepEqual(fieldOf(there, "Spec"), fieldOf(after, "Spec")) {
			after.SetGeneration(there.GetGeneration() + 1)
		}
		return after, nil
	})
	if apierrors.IsNotFound(err) && wanted.GetUID() != "" {
		return conflict(obj, "the UID does not match: there is no such object")
	}
	return err
}
