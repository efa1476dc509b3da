package testkit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status writes the status of objects.
func (s *server) Status() client.SubResourceWriter { return s.SubResource("status") }

// SubResource is one of status, resize (of a pod) and binding (of a pod).
func (s *server) SubResource(name string) client.SubResourceClient {
	field, ok := map[string]string{"status": "Status", "resize": "Spec", "binding": ""}[name]
	if !ok {
		panic(fmt.Errorf("testkit: there is no subresource %s", name))
	}
	return &subresource{server: s, field: field}
}

// subresource writes one field of objects.
type subresource struct {
	client.SubResourceClient // nil: what nobody here uses is not there
	server                   *server
	field                    string
}

// Create puts a pod on a node, as the scheduler asks for.
func (r *subresource) Create(ctx context.Context, obj, sub client.Object, _ ...client.SubResourceCreateOption) error {
	binding, ok := sub.(*corev1.Binding)
	if !ok {
		return fmt.Errorf("testkit: create %T of %T", sub, obj)
	}
	return r.server.changeField(ctx, obj, "Spec", func(there client.Object) (client.Object, error) {
		bound, ok := copied(there).(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("testkit: bind a %T", there)
		}
		bound.Spec.NodeName = binding.Target.Name
		return bound, nil
	})
}

// Update replaces the field.
func (r *subresource) Update(ctx context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return r.server.changeField(ctx, obj, r.field, func(client.Object) (client.Object, error) { return copied(obj), nil })
}

// Patch changes the field by a patch.
func (r *subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return r.server.changeField(ctx, obj, r.field, func(there client.Object) (client.Object, error) {
		if patch.Type() == types.JSONPatchType {
			after := copied(there)
			return after, patched(after, obj, patch)
		}
		return merged(there, obj, patch)
	})
}
